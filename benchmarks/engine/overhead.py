"""What routing costs where it brings nothing: cheap counting, and batches with next to no record.

Kafka, words, a partition for each, counts, a merge, a Kafka sink: the shipped `word_count`. All
rows of a table are measured in one session, turn by turn, so that what slows the machine meets all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from benchmarks.engine.measure import Bench, Run, middle, settle, zipf
from benchmarks.engine.plain import HashedService, group_by
from benchmarks.tables import MEETS, Row, Table, verdict
from unskew.config.models.job import Job
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.session import rename_within_jvm

RATIO_MAX = 1.25
TINY_RATIO_MAX = 1.3
EXPONENT = 1.1
HASH = "hash column"
BY_HAND = "groupBy by hand"
BY_HAND_RENAMED = "the same, renames as here"
MASTER = "local[*]"


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 1_000_000
    batches: int = 4
    rounds: int = 2
    tiny_records: int = 16
    tiny_batches: int = 15


QUICK = Size(records=2000, batches=2, rounds=1, tiny_records=4, tiny_batches=3)

Variant = Callable[[SparkSession, Job], None]


def overhead(bench: Bench, size: Size) -> Table:
    """CPU and wall time of a record: routed, hashed, at the source and by plain Spark."""
    bench.fill("overhead", zipf(size.records * size.batches, EXPONENT))
    formats = {
        "pipeline": "<16",
        "cpu us": "7.2f",
        "x hash": "6.2f",
        "wall us": "7.2f",
        "x wall": "6.2f",
        "s a batch": "9.2f",
    }
    line = (
        f"CPU and wall time of a record: word count, {size.records:,} one-word records a batch,"
        f" z = {EXPONENT}, 16 partitions on {MASTER}; medians of {size.rounds} rounds of"
        f" {size.batches - 1} warm batches. `partial_key` must take at most {RATIO_MAX} times the"
        " CPU and the wall time of the same pipeline with a plain hash column."
    )
    names = (HASH, "partial_key", "level", "local", "none", BY_HAND)
    return Table("overhead", line, formats, _overhead(bench, size, names))


def _overhead(bench: Bench, size: Size, names: tuple[str, ...]) -> Iterator[Row]:
    runs = _runs(bench, "overhead", size.records, size.rounds, names)
    cpu = {name: middle(run.cpu_us_a_record() for run in runs[name]) for name in names}
    wall = {name: middle(run.wall_us_a_record() for run in runs[name]) for name in names}
    for name in names:
        ratios = (_ratio(runs, name, Run.cpu_us_a_record), _ratio(runs, name, Run.wall_us_a_record))
        judged = name == "partial_key"
        yield {
            "pipeline": name,
            "cpu us": cpu[name],
            "x hash": ratios[0],
            "wall us": wall[name],
            "x wall": ratios[1],
            "s a batch": middle(second for run in runs[name] for second in run.seconds),
            MEETS: verdict(
                {
                    "cpu": ratios[0] <= RATIO_MAX if judged else None,
                    "wall": ratios[1] <= RATIO_MAX if judged else None,
                }
            ),
        }


def _ratio(runs: dict[str, list[Run]], name: str, cost: Callable[[Run], float]) -> float:
    """The median over the rounds: both runs of a round had the same machine."""
    pairs = zip(runs[name], runs[HASH], strict=True)
    return middle(cost(measured) / cost(reference) for measured, reference in pairs)


def tiny(bench: Bench, size: Size) -> Table:
    """The fixed cost of a batch."""
    bench.fill("tiny", zipf(size.tiny_records * size.tiny_batches, EXPONENT), partitions=1)
    formats = {
        "pipeline": "<25",
        "partitions": "10",
        "s a batch": "9.3f",
        "x groupBy": "9.2f",
        "cpu s": "6.3f",
        "x cpu": "6.2f",
    }
    line = (
        f"The fixed cost of a batch: {size.tiny_records} records, else as above; medians of"
        f" {size.rounds} rounds of {size.tiny_batches - 1} batches. Must be at most"
        f" {TINY_RATIO_MAX} times that of `groupBy(key).count()` written by hand, with the same"
        " sink, state store and merge partitions, run as Spark runs it; below it the same query"
        " with the files of its checkpoint renamed as Unskew's jobs have it."
    )
    return Table("tiny", line, formats, _tiny(bench, size))


def _tiny(bench: Bench, size: Size) -> Iterator[Row]:
    names = (
        BY_HAND,
        BY_HAND_RENAMED,
        "none",
        "level/4",
        "partial_key/4",
        "level",
        "partial_key",
        HASH,
    )
    runs = _runs(bench, "tiny", size.tiny_records, size.rounds, names)
    seconds = {name: middle(s for run in runs[name] for s in run.seconds) for name in names}
    cpu = {name: middle(run.cpu_seconds / len(run.warm) for run in runs[name]) for name in names}
    for name in names:
        ratio = seconds[name] / seconds[BY_HAND]
        grouping, _, partitions = name.partition("/")
        judged = grouping in ("partial_key", "level")
        yield {
            "pipeline": grouping,
            "partitions": int(partitions or 16) if judged or name == HASH else None,
            "s a batch": seconds[name],
            "x groupBy": ratio,
            "cpu s": cpu[name],
            "x cpu": cpu[name] / cpu[BY_HAND],
            MEETS: verdict({"time": ratio <= TINY_RATIO_MAX if judged else None}),
        }


def _runs(
    bench: Bench, topic: str, records: int, rounds: int, names: tuple[str, ...]
) -> dict[str, list[Run]]:
    """Every pipeline once a round, turn by turn; a round before them does not count."""
    runs: dict[str, list[Run]] = {name: [] for name in names}
    with bench.spark(MASTER) as (spark, meter):
        for number in range(rounds + 1):
            for name in names:
                _run(bench, spark, name, topic, records)
                if number:
                    runs[name].append(settle(meter))
            settle(meter)
    return runs


def _run(bench: Bench, spark: SparkSession, name: str, topic: str, records: int) -> None:
    grouping, _, partitions = name.partition("/")
    plain = {HASH: "key", BY_HAND: "none", BY_HAND_RENAMED: "none"}.get(name, grouping)
    job = bench.job(topic, records, {"type": plain}, partitions=int(partitions or 16))
    if name == BY_HAND:
        group_by(spark, job)
    elif name == BY_HAND_RENAMED:
        with rename_within_jvm(spark, job.checkpoint):
            group_by(spark, job)
    elif name == HASH:
        HashedService(job, spark).run()
    else:
        Service(job, spark).run()
