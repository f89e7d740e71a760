"""What `grouping: auto` begins with: the cost model on a bounded sample read before the query.

A way other than `level` is taken if it saves more than the standard deviation of what it is
expected to save: the worst case of `level` is the mildest, and measured batches correct it soon.
Plain Spark (`none`) is taken, where Spark computes the operator itself, if no other way is more
than a twentieth faster: its choice is final, since its merge keeps other columns. Of any other
operator `none` is Spark's own hash of the key, and a way like the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from unskew.config.errors import UnskewError
from unskew.config.models.job import Job
from unskew.grouping.base import UInt64s
from unskew.grouping.choice.estimates import Estimates
from unskew.grouping.choice.ways import LEVEL, LEVEL_SECONDS, list_ways
from unskew.grouping.simulation.batch_cost import Constants, Machine
from unskew.grouping.simulation.loads import HASHED, KeyBatch, Loads, Work, spread
from unskew.jobs.engine.samples.sample_rows import JobSample, sample_job_in
from unskew.jobs.kafka.newest_records import Limits, sample_source

CLOSE = 1.05
_SAMPLE_SECONDS = 3.0
_RECORDS_MIN = 1000
_ROUTED_MAX = 400_000


@dataclass(frozen=True)
class FirstChoice:
    """A way, why, and what the operator takes, if that was measured."""

    way: str
    why: str
    work: Work | None = None


def choose_first(
    job: Job, spark: SparkSession, constants: Constants, *, spark_alone: bool
) -> FirstChoice:
    """The way of the first batch; `spark_alone`: it may be plain Spark."""
    asked = job.grouping.sample_records
    if not asked:
        return FirstChoice(LEVEL, "no record is sampled (sample_records: 0)")
    try:
        rows, batch_rows = _read_sample(job, spark, asked)
    except (UnskewError, PySparkException, Py4JError, OSError) as error:
        # The query meets the same error, and reports it.
        return FirstChoice(LEVEL, f"no record could be sampled ({type(error).__name__})")
    if rows is None or rows.work is None or rows.hashes.size < _RECORDS_MIN:
        sampled = 0 if rows is None else rows.hashes.size
        return FirstChoice(LEVEL, f"only {sampled:,} records could be sampled, too few to predict")
    hashes = _repeat_keys(rows.hashes, batch_rows)
    slots = spark.sparkContext.defaultParallelism
    return choose_by_model(hashes, job.partitions, slots, rows.work, constants, spark_alone)


def choose_by_model(
    hashes: UInt64s,
    partitions: int,
    slots: int,
    work: Work,
    constants: Constants,
    spark_alone: bool,
) -> FirstChoice:
    """The way for batches of these keys."""
    changing = [way for way in list_ways(work.native) if way != LEVEL_SECONDS]
    ways = (*changing, *([HASHED] if spark_alone and work.native else []))
    batch = [KeyBatch.from_hashes(hashes)]
    loads = {way: next(spread(way, batch, partitions, slots, work)) for way in ways}
    machine = Machine(slots, constants)
    seconds = {way: machine.batch_parts(way, loads[way], work).seconds for way in ways}
    predicted = ", ".join(f"{way} {each:.2f} s" for way, each in seconds.items())
    begin = f"predicted for a batch of {hashes.size:,} records like the sampled: {predicted}"
    if spark_alone and work.native and seconds[HASHED] <= CLOSE * min(seconds.values()):
        why = f"{begin}; Spark combines before its shuffle, and this choice is final"
        return FirstChoice(HASHED, f"{why} for the checkpoint", work)
    way, saved, deviation = _find_surest(
        {way: loads[way] for way in changing}, slots, work, constants
    )
    if saved <= deviation:
        return FirstChoice(LEVEL, f"{begin}; no other way saves more than its deviation", work)
    why = f"{begin}; {way} saves {saved:.2f} s +- {deviation:.2f} s of level's"
    return FirstChoice(way, why, work)


def _find_surest(
    loads: Mapping[str, Loads], slots: int, work: Work, constants: Constants
) -> tuple[str, float, float]:
    """The way whose saving is farthest above its deviation, and both."""
    estimates = Estimates.begin(constants, work)
    size = work.partial_bytes
    products = {way: estimates.products(way, each, slots, size) for way, each in loads.items()}
    others = products.keys() - {LEVEL}
    saved = {way: estimates.seconds(products[LEVEL] - products[way]) for way in sorted(others)}
    way = max(saved, key=lambda each: saved[each][0] - saved[each][1])
    return way, *saved[way]


def _repeat_keys(hashes: UInt64s, rows: int) -> UInt64s:
    """Repeat the keys up to about `rows` rows: a batch is larger than its sample."""
    times = round(min(rows, _ROUTED_MAX) / hashes.size)
    return np.tile(hashes, max(1, times))


def _read_sample(job: Job, spark: SparkSession, records: int) -> tuple[JobSample | None, int]:
    """The rows of a sample, None if none can be had; and how many rows a batch may have."""
    raw = sample_source(job.source, Limits(records, _SAMPLE_SECONDS))
    if raw is not None and not raw.keys:
        return None, 0
    raw = None if raw is None else raw.order_by_task()
    for file in job.operator.files():
        spark.sparkContext.addPyFile(file)
    rows = sample_job_in(spark, job, raw, records)
    limit = getattr(job.source, "records_per_batch", None)
    read = len(raw.keys) if raw is not None else records
    return rows, round(rows.hashes.size * (limit / read if limit else 1))
