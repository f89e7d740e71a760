"""Reading Kafka: a topic keyed by the hot key, and batches that read a topic to its end.

Of the first one of its Kafka partitions holds most of the records. The second is what each batch of
a job does that keeps up with its topic: Spark's connector asks for the topic's newest offsets after
each fetch. The consumer has sent its next fetch by then, and at the end the broker holds that, and
all that comes after it on the same connection, for half a second.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.engine.measure import Bench, middle, settle, zipf
from benchmarks.engine.plain import group_by
from benchmarks.tables import MEETS, UNJUDGED, Row, Table, verdict
from unskew.jobs.engine.service import Service
from unskew.jobs.query.source import FETCH_WAIT

EXPONENT = 2.0
KAFKA_PARTITIONS = 4
MASTER = "local[2]"


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 1_000_000
    batches: int = 3
    rounds: int = 2


QUICK = Size(4000, 2, 1)
END_EXPONENT = 1.1
KAFKAS_OWN_WAIT = "500"
BY_HAND = "groupBy by hand"
END_NAMES = ("level", "local", "none", BY_HAND)
END_MASTER = "local[*]"
END_SIZE, END_QUICK = Size(100_000, 4, 5), Size(2000, 3, 1)


@dataclass(frozen=True)
class Stage:
    """A read and route stage that is done."""

    seconds: float
    tasks: int
    records_max_over_mean: float


def source(bench: Bench, size: Size) -> Table:
    """The read and route stage with and without the split."""
    records = zipf(size.records * size.batches, EXPONENT)
    bench.fill("keyed", records, KAFKA_PARTITIONS, keyed=True)
    formats = {
        "split": "<5",
        "grouping": "<11",
        "tasks": "5",
        "max/mean": "8.2f",
        "stage s": "7.2f",
        "x split": "7.2f",
        "batch s": "7.2f",
    }
    line = (
        f"The stage that reads and routes: word count of {size.records:,} records a batch from a"
        f" topic of {KAFKA_PARTITIONS} Kafka partitions, keyed by the word, z = {EXPONENT}, on"
        f" {MASTER}; medians of {size.rounds} rounds of {size.batches - 1} warm batches."
        " `max/mean`: records of the fullest task. With the split the stage must be faster."
    )
    return Table("source", line, formats, _source(bench, size))


def _source(bench: Bench, size: Size) -> Iterator[Row]:
    cases = [(split, name) for name in ("level", "partial_key") for split in (True, False)]
    stages: dict[tuple[bool, str], list[Stage]] = {case: [] for case in cases}
    batches: dict[tuple[bool, str], list[float]] = {case: [] for case in cases}
    with bench.spark(MASTER) as (spark, meter):
        for number in range(size.rounds + 1):
            for split, name in cases:
                more = {"source.split": split}
                job = bench.job("keyed", size.records, {"type": name}, **more)
                known = _newest_stage(spark)
                Service(job, spark).run()
                run = settle(meter)
                if number:
                    stages[split, name] += _route_stages(spark, known)[1 : 1 + len(run.warm)]
                    batches[split, name] += run.seconds
    for split, name in cases:
        taken = middle(stage.seconds for stage in stages[split, name])
        ratio = taken / middle(stage.seconds for stage in stages[True, name])
        yield {
            "split": "on" if split else "off",
            "grouping": name,
            "tasks": stages[split, name][-1].tasks,
            "max/mean": middle(stage.records_max_over_mean for stage in stages[split, name]),
            "stage s": taken,
            "x split": ratio,
            "batch s": middle(batches[split, name]),
            MEETS: verdict({"time": None if split else ratio > 1.0}),
        }


def _stages(spark: SparkSession) -> list[Any]:
    """Spark's own record of its stages, which it keeps without a page to show it too."""
    context: Any = spark.sparkContext
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - pyspark has no public way to it
    no_quantiles = context._gateway.new_array(context._jvm.double, 0)  # noqa: SLF001
    every = context._jvm.java.util.ArrayList()  # noqa: SLF001
    stages = store.stageList(every, False, False, no_quantiles, every)
    return [stages.apply(number) for number in range(stages.size())]


def _newest_stage(spark: SparkSession) -> int:
    return max((int(stage.stageId()) for stage in _stages(spark)), default=-1)


def _route_stages(spark: SparkSession, after: int) -> list[Stage]:
    """The stages since `after` that read from the source, oldest first."""
    context: Any = spark.sparkContext
    store = context._jsc.sc().statusStore()  # noqa: SLF001
    measured = []
    for stage in sorted(_stages(spark), key=lambda each: int(each.stageId())):
        if int(stage.stageId()) <= after or not int(stage.inputRecords()):
            continue
        tasks = store.taskList(stage.stageId(), stage.attemptId(), 10_000)
        read = [
            int(tasks.apply(task).taskMetrics().get().inputMetrics().recordsRead())
            for task in range(tasks.size())
        ]
        took = stage.completionTime().get().getTime() - stage.submissionTime().get().getTime()
        measured.append(Stage(took / 1000, len(read), max(read) * len(read) / sum(read)))
    return measured


def end(bench: Bench, size: Size) -> Table:
    """The last batch beside those before it, as Kafka waits and as jobs let it wait."""
    bench.fill("end", zipf(size.records * size.batches, END_EXPONENT))
    formats = {
        "pipeline": "<16",
        "wait ms": "8",
        "before the end s": "16.2f",
        "at the end s": "12.2f",
        "x before": "8.2f",
    }
    line = (
        f"Word count, {size.records:,} records a batch, 16 partitions on {END_MASTER}: medians of"
        f" {size.rounds} rounds of the batch that reads the topic to its end, and of the warm ones"
        f" before it. `wait ms`: `{FETCH_WAIT}`, of which Kafka's default is {KAFKAS_OWN_WAIT}. As"
        " jobs have it, a batch at the end must take at most 1.1 times as long as one before it."
    )
    return Table("end", line, formats, _end(bench, size))


def _end(bench: Bench, size: Size) -> Iterator[Row]:
    cases = [(name, wait) for name in END_NAMES for wait in (KAFKAS_OWN_WAIT, None)]
    before: dict[tuple[str, str | None], list[float]] = {case: [] for case in cases}
    last: dict[tuple[str, str | None], list[float]] = {case: [] for case in cases}
    with bench.spark(END_MASTER) as (spark, meter):
        for number in range(size.rounds + 1):
            for name, wait in cases:
                grouping = "none" if name == BY_HAND else name
                more = {} if wait is None else {"source.options": {FETCH_WAIT: wait}}
                job = bench.job("end", size.records, {"type": grouping}, **more)
                if name == BY_HAND:
                    group_by(spark, job)
                else:
                    Service(job, spark).run()
                seconds = settle(meter).seconds
                if number:
                    before[name, wait] += seconds[:-1]
                    last[name, wait].append(seconds[-1])
    for name, wait in cases:
        ratio = middle(last[name, wait]) / middle(before[name, wait])
        judged = wait is None and name != BY_HAND
        yield {
            "pipeline": name,
            "wait ms": wait or "ours",
            "before the end s": middle(before[name, wait]),
            "at the end s": middle(last[name, wait]),
            "x before": ratio,
            MEETS: verdict({"time": ratio <= 1.1}) if judged else UNJUDGED,
        }
