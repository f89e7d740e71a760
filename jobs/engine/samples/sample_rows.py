"""A sample of records through Spark: keys by an SQL expression, or a job's own rows and operator.

The operator is measured in a task, as it runs in the job: on rows of few keys and on rows of many,
which tells the time of a record from that of a key.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.config.errors import UsageError
from unskew.config.models.job import Job
from unskew.config.models.operator import OPEN_KEYS
from unskew.grouping.base import Float64s, Int64s, UInt64s
from unskew.grouping.simulation.loads import Work
from unskew.jobs.engine.session import open_job_session, session
from unskew.jobs.engine.spark_errors import shorten
from unskew.jobs.kafka.newest_records import RawSample
from unskew.jobs.operators.base import KEY, KEY_HASH, PANE, Operator
from unskew.jobs.operators.user_code.failing_rows import make_partials
from unskew.jobs.operators.user_code.opened import begin_task
from unskew.jobs.query import source
from unskew.jobs.query.check_expressions import name_wrong_expressions
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records, read_file_cost
from unskew.jobs.query.prepare import REJECTED
from unskew.jobs.query.prepare_rows import SIZE

MEASURED_ROWS = 100_000
_PILOT_ROWS = 100
_TRIALS, _TRIAL_SECONDS, _TRIALS_SECONDS = 3, 0.2, 1.0
_SETTINGS = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
_RESULT = "work STRING"
# With `on_error: dead_letter` every row carries its record, most without a reason.
_IS_ACCEPTED = f"{REJECTED}.reason is null"


@dataclass(frozen=True)
class JobSample:
    """What a job makes of the sample."""

    hashes: UInt64s
    texts: pa.ChunkedArray
    """The first column of each row's key."""
    rejected: int
    work: Work | None
    """What its operator takes; None where it has no partial to measure."""
    sizes: Int64s | None = None
    """The bytes of each row of a table; None where the grouping does not balance them."""
    file_cost: int = 0
    """The bytes that each of its files costs beside them."""


def evaluate_keys(raw: RawSample, expression: str) -> Sequence[str | None]:
    """The keys of the records by an SQL expression over `key` and `value`, both texts."""
    with session("compare", _SETTINGS) as spark:
        return evaluate_keys_in(spark, raw, expression)


def evaluate_keys_in(spark: SparkSession, raw: RawSample, expression: str) -> Sequence[str | None]:
    """Evaluate the keys of the records in an existing session."""
    columns = {
        "key": pa.array(raw.keys, pa.binary()),
        "value": pa.array(raw.values, pa.binary()),
    }
    records = spark.createDataFrame(pa.table(columns)).select(
        sf.col("key").cast("string"), sf.col("value").cast("string")
    )
    try:
        keys = records.select(sf.expr(expression).cast("string").alias(KEY)).toArrow()
    except PySparkException as error:
        raise UsageError(f"--key: {shorten(str(error))}") from error
    if keys.num_rows != len(raw.values):
        raise UsageError(f"--key: one value a record; {expression} makes one of many")
    texts: list[str | None] = keys[KEY].to_pylist()
    return texts


def sample_job(job: Job, raw: RawSample | None, records: int) -> JobSample:
    """The rows of a job's sample; without `raw`, Spark reads it from the job's source."""
    with open_job_session(job) as spark, name_wrong_expressions(spark, job):
        for file in job.operator.files():
            spark.sparkContext.addPyFile(file)
        return sample_job_in(spark, job, raw, records)


def sample_job_in(spark: SparkSession, job: Job, raw: RawSample | None, records: int) -> JobSample:
    """Sample the job's records in an existing session."""
    # Rows of a table have the name of their key only where it is shown.
    metrics = job.metrics.model_copy(update={"hot_key_names": True})
    job = job.model_copy(update={"metrics": metrics})
    frame = source.read_first(spark, job.source, records) if raw is None else _load(spark, raw)
    prepared, operator = prepare_records(decode(frame, job.decode, source.COLUMNS), job)
    rows = prepared.persist()
    accepted = rows.where(_IS_ACCEPTED).drop(REJECTED)
    sized = SIZE in accepted.columns
    keys = accepted.select(KEY, KEY_HASH, *([SIZE] if sized else [])).toArrow()
    hashes = keys[KEY_HASH].to_numpy().astype(np.int64).view(np.uint64)
    sizes = keys[SIZE].to_numpy().astype(np.int64) if sized else None
    work = _measure(accepted, operator) if operator.merges and keys.num_rows else None
    rejected = rows.count() - keys.num_rows
    sample = JobSample(hashes, keys[KEY], rejected, work, sizes, read_file_cost(job))
    rows.unpersist()
    return sample


def _load(spark: SparkSession, raw: RawSample) -> DataFrame:
    """The sample with the source's columns."""
    micros = pa.array([1000 * at for at in raw.timestamps_ms], pa.int64())
    columns = {
        "key": pa.array(raw.keys, pa.binary()),
        "value": pa.array(raw.values, pa.binary()),
        "topic": pa.array(["sample"] * len(raw.keys), pa.string()),
        "partition": pa.array(raw.partitions, pa.int32()),
        "offset": pa.array(raw.offsets, pa.int64()),
        "timestamp": micros.cast(pa.timestamp("us", "UTC")),
    }
    stamped = sf.lit(False).alias(source.STAMPED_ON_ARRIVAL)
    return spark.createDataFrame(pa.table(columns)).select(*source.COLUMNS, stamped)


def _measure(accepted: DataFrame, operator: Operator) -> Work:
    measured = accepted.limit(MEASURED_ROWS).coalesce(1).mapInArrow(_WorkMeter(operator), _RESULT)
    values: dict[str, Any] = json.loads(measured.toArrow()["work"][0].as_py())
    return Work(**values)


@dataclass(frozen=True)
class _WorkMeter:
    """The function that `mapInArrow` calls on the task's rows."""

    operator: Operator

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = measure_work(self.operator, pa.Table.from_batches(batches))
        yield pa.RecordBatch.from_pydict({"work": [json.dumps(asdict(work))]})


def measure_work(operator: Operator, rows: pa.Table) -> Work:
    """Measure an operator's time for a record and for a key, by rows of few keys and of many."""
    by_key = rows.take(np.lexsort((rows[PANE].to_numpy(), rows[KEY_HASH].to_numpy())))
    mixed = rows.take(np.random.default_rng(1).permutation(rows.num_rows))
    pilot = mixed.slice(0, _PILOT_ROWS)
    _time_partials(operator, pilot)  # what it loads once a worker is neither
    row_seconds = _time_partials(operator, pilot)[0] / pilot.num_rows
    size = min(rows.num_rows, max(_PILOT_ROWS, int(_TRIAL_SECONDS / max(row_seconds, 1e-9))))
    trials = [by_key.slice(0, size), mixed.slice(0, size)]
    # An operator meets a key once in each stretch of time, but opens it once.
    met = [KEY_HASH] if operator.defines_open() else [KEY_HASH, PANE]
    groups = [trial.group_by(met).aggregate([]).num_rows for trial in trials]
    counts = np.array([[size, number] for number in groups], float)
    seconds, partial_bytes = _time_trials(operator, trials)
    cost, setup = _split(counts, seconds)
    return Work(cost, setup, partial_bytes, operator.native)


def _time_trials(operator: Operator, trials: Sequence[pa.Table]) -> tuple[Float64s, float]:
    """How long each of these rows takes, and the bytes of a partial of the last ones.

    Whatever else the machine does makes a trial longer, never shorter: the least of some counts.
    """
    started = time.perf_counter()
    least, carried = np.full(len(trials), np.inf), 0.0
    for _ in range(_TRIALS):
        for number, trial in enumerate(trials):
            seconds, carried = _time_partials(operator, trial)
            least[number] = min(least[number], seconds)
        if time.perf_counter() - started > _TRIALS_SECONDS:
            break
    return least, carried


def _split(counts: Float64s, seconds: Float64s) -> tuple[float, float]:
    """Seconds a record and a key; where keys cannot be told from records, none for a key."""
    (size, few), (_, many) = counts
    setup = (seconds[1] - seconds[0]) / (many - few) if many > 1.1 * few else 0.0
    cost = (seconds[0] - max(setup, 0.0) * few) / size
    if setup <= 0 or cost <= 0:
        return float(seconds.mean() / size), 0.0
    return float(cost), float(setup)


def _time_partials(operator: Operator, rows: pa.Table) -> tuple[float, float]:
    """How long these rows take, and the bytes of a partial beside key and count."""
    # What is still open of the rows before would cost these nothing.
    begin_task(operator, 0)
    begin_task(operator, OPEN_KEYS)
    started = time.perf_counter()
    parts = [part.partials for part in make_partials(operator, rows)]
    seconds = time.perf_counter() - started
    made = [part for part in parts if part is not None and part.num_rows]
    carried = sum(part[name].nbytes for part in made for name in operator.partial_columns)
    return seconds, carried / max(1, sum(part.num_rows for part in made))
