"""What Spark makes of a whole job: each row routed once, moved once, merged once."""

import dataclasses
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf

from tests.support.oracles import OPERATORS, SCHEMA, WINDOWS, keys_of, records
from tests.support.running.in_process import Ran, write_lines
from unskew.grouping.base import Chunk
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.route import route
from unskew.grouping.spark.router import PARTITION_KEY, Router, route_hashes
from unskew.jobs.query.pipeline import Pipeline

pytestmark = pytest.mark.spark

ROUTED = [
    "StateStoreSave",
    "StateStoreRestore",
    "Exchange HashPartitioning 2",
    "MapInArrow",
    "Exchange ShufflePartitionIdPassThrough 3",
    "ArrowEvalPython",
]
PLAIN = ROUTED[:3]
PLAIN_IN_PYTHON = [*ROUTED[:4], "Exchange HashPartitioning 3"]


@dataclass(frozen=True)
class CountingRouter(Router):
    """A router that leaves a file in `folder` of what each of its calls was asked to route."""

    folder: str = ""

    def _route(self, chunks: Iterable[Chunk]) -> Iterator[pa.Array]:
        asked = [np.empty(0, np.uint64)]

        def noted() -> Iterator[Chunk]:
            for keys, times in chunks:
                asked.append(keys.copy())
                yield keys, times

        yield from super()._route(noted())
        np.save(f"{self.folder}/{uuid.uuid4().hex}.npy", np.concatenate(asked))


class CountingPipeline(Pipeline):
    """A job's pipeline with such a router; its files are beside the checkpoints."""

    def make_router(self, sources: int) -> Router:
        given = super().make_router(sources)
        fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
        folder = Path(self.job.checkpoint).parent / "evaluated"
        folder.mkdir(parents=True, exist_ok=True)
        return CountingRouter(**fields, folder=str(folder))


def evaluated(folder: Path) -> list[int]:
    """The hashes that were routed, sorted, each as often as it was."""
    arrays = [np.load(file) for file in folder.glob("*.npy")]
    hashes: list[int] = np.sort(np.concatenate(arrays).view(np.int64)).tolist()
    return hashes


def stages(plan: Any) -> list[str]:
    """The nodes of a physical plan that move rows, keep state or call Python, last one first."""
    nodes = []
    name = plan.getClass().getSimpleName().removesuffix("Exec")
    if name == "ShuffleExchange":
        target = plan.outputPartitioning()
        nodes = [f"Exchange {target.getClass().getSimpleName()} {target.numPartitions()}"]
    elif re.search("Exchange|Python|Pandas|Arrow|StateStore", name):
        nodes = [name]
    children = plan.children()
    for index in range(children.size()):
        nodes += stages(children.apply(index))
    return nodes


def executed(ran: Ran) -> list[str]:
    """The stages of the last batch that a job's query ran."""
    return stages(ran.query._jsq.streamingQuery().lastExecution().executedPlan())


@pytest.fixture
def no_empty_batches(spark: SparkSession) -> Iterator[None]:
    """The last batch of a query has rows: a plan over none is cut short."""
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    yield
    spark.conf.unset("spark.sql.streaming.noDataMicroBatches.enabled")


def hashes_of(spark: SparkSession, keys: list[str]) -> list[int]:
    """Spark's own hashes of keys, sorted."""
    rows = spark.createDataFrame([(key,) for key in keys], "key string")
    return sorted(row[0] for row in rows.select(sf.xxhash64("key")).collect())


@pytest.mark.usefixtures("no_empty_batches")
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_job_routes_each_row_once_and_moves_it_once(
    spark: SparkSession, tmp_path: Path, operator: str
) -> None:
    rows = records(3, 120)
    for batch in range(2):
        write_lines(tmp_path / "in", f"{batch}.json", rows[batch::2])
    changes = {
        "operator": OPERATORS[operator],
        "window": WINDOWS["sliding"],
        "lateness": "1 hour",
    }
    routed = Ran(
        spark, tmp_path, "r", grouping={"type": "level"}, pipeline=CountingPipeline, **changes
    )
    keys = [key for row in rows for key in keys_of(row, operator)]
    assert executed(routed) == ROUTED
    assert evaluated(tmp_path / "checkpoints" / "evaluated") == hashes_of(spark, keys)
    assert len(routed.batches) == 2
    for done in routed.batches:
        assert done.stats is not None
        assert done.stats.total == sum(
            routes.records for routes in routed.journal.routes(done.batch).values()
        )

    plain = Ran(spark, tmp_path, "p", grouping={"type": "none"}, **changes)
    assert executed(plain) == (PLAIN_IN_PYTHON if operator == "paced" else PLAIN)
    assert plain.last == routed.last


def _unmarked(frame: DataFrame, router: Router) -> DataFrame:
    """`route_hashes` without its mark: what the tests below must see."""
    udf: Any = arrow_udf(router.route_keys, returnType="int")  # type: ignore[call-overload]
    routed = frame.withColumn(PARTITION_KEY, udf(sf.col("hash")))
    return routed.repartitionById(router.partitions, sf.col(PARTITION_KEY))


@pytest.mark.parametrize("marked", [True, False])
def test_a_filter_on_the_partition_routes_no_row_twice(
    spark: SparkSession, tmp_path: Path, marked: bool
) -> None:
    router = CountingRouter("partial_key", 4, folder=str(tmp_path))
    frame = spark.range(1000, numPartitions=2).select(sf.col("id").alias("hash"))
    made = route_hashes(frame, sf.col("hash"), router) if marked else _unmarked(frame, router)

    kept = made.where("partition_key in (1, 2) and hash % 2 = 0").collect()

    partitions = {row.partition_key for row in kept}
    if marked:
        assert evaluated(tmp_path) == list(range(1000))
        assert partitions == {1, 2}
    else:  # the check bites; what was filtered by is not what is seen
        assert len(evaluated(tmp_path)) > len(set(evaluated(tmp_path)))
        assert partitions == {0, 1, 2, 3}


def test_a_filter_in_a_stream_routes_no_row_twice(spark: SparkSession, tmp_path: Path) -> None:
    rows = records(4, 100)
    for batch in range(2):
        write_lines(tmp_path / "in", f"{batch}.json", rows[batch::2])
    (tmp_path / "evaluated").mkdir()
    router = CountingRouter("w_choices", 3, folder=str(tmp_path / "evaluated"))
    lines = spark.readStream.option("maxFilesPerTrigger", "1").text(str(tmp_path / "in"))
    routed = route_hashes(lines, sf.xxhash64("value"), router)
    query = (
        routed.where(f"{PARTITION_KEY} <> 1")
        .select("value", PARTITION_KEY, sf.spark_partition_id().alias("actual"))
        .writeStream.format("memory")
        .queryName("filtered")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    rows_kept = spark.table("filtered").collect()
    assert 0 < len(rows_kept) < 100
    assert all(row.actual == row.partition_key != 1 for row in rows_kept)
    texts = [json.dumps(row) for row in rows]
    assert evaluated(tmp_path / "evaluated") == hashes_of(spark, texts)


def test_a_job_routes_as_route_does(spark: SparkSession, tmp_path: Path) -> None:
    rows = records(5, 200)
    for batch in range(2):
        write_lines(tmp_path / "in", f"{batch}.json", rows[batch::2])
    job = Ran(
        spark, tmp_path, "job", operator=OPERATORS["vwap"], grouping={"type": "w_choices"}, seed=7
    )
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
    journal = Journal(str(tmp_path / "own" / "unskew"))
    routed = route(
        frame.json(str(tmp_path / "in")),
        key="symbol",
        grouping="w_choices",
        partitions=3,
        journal=journal,
        seed=7,
    )
    sink = routed.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "own"))
    sink.trigger(availableNow=True).start().awaitTermination()

    for batch in range(2):
        assert journal.routes(batch) == job.journal.routes(batch)
        (mine,), (its,) = journal.states(batch).values(), job.journal.states(batch).values()
        assert mine.checksum() == its.checksum()
        assert journal.routes(batch)[0].records == 100
