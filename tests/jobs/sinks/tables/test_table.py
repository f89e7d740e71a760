import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.running.in_process import Ran, write_lines
from tests.support.running.plans import (
    CountingPipeline,
    evaluated_folder,
    list_python_inputs,
    list_stages,
    read_evaluated,
)
from unskew.config.errors import ExternalError
from unskew.grouping.simulation.loads import KeyBatch
from unskew.jobs.commands.prediction.table_writers import (
    LevelOptions,
    Reading,
    Writers,
    predict_writers,
    route_by_level,
)
from unskew.jobs.engine.samples.sample_rows import sample_job_in
from unskew.jobs.observe.inspection import inspect
from unskew.jobs.sinks.tables.layout import read_owner
from unskew.jobs.sinks.tables.log import list_committed_files

JOB = {
    "event_time": "timestamp",
    "window": {"type": "none"},
    "lateness": None,
    "merge": {"partitions": 4, "output": "update"},
    "decode": {"type": "json", "schema": "country STRING, amount INT, at TIMESTAMP"},
    "partitions": 4,
}
COLUMNS = {"country": "country", "amount": "amount", "key": "topic IS NOT NULL", "at": "at"}
LONG = "ü" * 130
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def events(seed: int, records: int = 2000) -> list[dict[str, Any]]:
    """Skewed events: half of them of a single country."""
    rng = np.random.default_rng(seed)
    countries = [None, "a", " ../b=c%2F\n", *[f"c{number}" for number in range(3)]]
    weights = np.array([1 / (rank + 1) ** 1.4 for rank in range(len(countries))])
    drawn = rng.choice(len(countries), records, p=weights / weights.sum())
    return [
        {
            "country": countries[number],
            "amount": int(amount),
            "at": f"2026-01-0{int(amount) % 2 + 1}T00:00:00Z",
        }
        for number, amount in zip(drawn, rng.integers(-9, 1000, records), strict=True)
    ]


def run(spark: SparkSession, folder: Path, name: str = "job", **changes: Any) -> Ran:
    sink = {
        "type": "table",
        "format": "parquet",
        "path": str(folder / "table"),
        "partition_by": ["country", "date(at) AS day"],
        **changes.pop("sink", {}),
    }
    operator = {"type": "rows", "columns": COLUMNS, "where": "amount >= 0"}
    settings = {"operator": operator, "sinks": [sink], **JOB, **changes}
    return Ran(spark, folder, name, **settings)


def rows_of(spark: SparkSession, path: Path) -> Counter[Any]:
    rows = spark.read.parquet(str(path)).collect()
    return Counter((row["country"], row["amount"], row["key"], str(row["day"])) for row in rows)


def expected(records: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(
        (each["country"], each["amount"], True, each["at"][:10])
        for each in records
        if each["amount"] >= 0
    )


def predict_level(batches: list[KeyBatch], options: LevelOptions | None) -> Writers:
    predictions = predict_writers(batches, JOB["partitions"], tasks=1, level=options)
    return next(each for each in predictions if each.way == "level")


def assert_predicted(spark: SparkSession, ran: Ran) -> None:
    """`compare --table` says of these records what the job's only batch made of them."""
    batch = KeyBatch.from_hashes(sample_job_in(spark, ran.job, None, 10**6).hashes)
    # One task reads; a first batch takes the parallelism for the number of those.
    tasks = spark.sparkContext.defaultParallelism
    reading = Reading(batch, np.zeros(batch.hashes.size, np.int64), tasks)
    (routes,) = route_by_level([reading], JOB["partitions"], LevelOptions())
    loads = batch.count(routes, JOB["partitions"])
    stats, written = ran.batches[0].stats, ran.batches[0].written
    assert stats is not None
    assert written is not None
    assert loads.pairs == written.files.sum()
    assert loads.keys.max() == written.files.max()
    assert loads.records.max() == stats.records.max()


def test_rows_are_in_the_table_once_and_every_writer_has_its_share(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = [events(1), events(2)]
    at = "2026-01-01T00:00:00Z"
    unusable = [{"country": name, "amount": 1, "at": at} for name in (LONG, NO_VALUE)]
    rejected = [*unusable, "no object"]
    for number, batch in enumerate(records):
        write_lines(tmp_path / "in", f"{number}.json", [*batch, *rejected])

    ran = run(spark, tmp_path, pipeline=CountingPipeline)
    wanted = expected(records[0] + records[1])

    assert rows_of(spark, tmp_path / "table") == wanted
    assert ran.rejected == {"partition_value_unusable": 4, "not_decoded": 2}
    lines = chain(*(file.read_text().splitlines() for file in (tmp_path / "bad").rglob("*.json")))
    assert Counter(json.loads(line)["reason"] for line in lines) == ran.rejected
    for done in ran.batches:
        assert done.stats is not None
        assert done.written is not None
        # One for each source, and the rejected records, which are not counted.
        assert done.stats.records.max() - done.stats.records.min() <= 2 + len(rejected)
        assert done.written.files.sum() <= 12 + 2 * 3  # values, and n - 1 pairs for each source
        assert done.written.seconds is not None
        assert (done.written.seconds > 0).all()
        assert done.stats.busy_seconds.tolist() == done.written.seconds.tolist()
    # Each row is routed once and moved once, and no stage takes whole rows into Python.
    assert list_stages(ran) == [
        "ArrowEvalPython",
        "Exchange ShufflePartitionIdPassThrough 4",
        "ArrowEvalPython",
    ]
    assert list_python_inputs(ran) == [{"key_hash", "arrived", "rejected"}, {"key_hash"}]
    routed = read_evaluated(evaluated_folder(ran.job.checkpoint))
    assert len(routed) == wanted.total() + 2 * len(rejected)
    files = {
        str(file.relative_to(tmp_path / "table")) for file in (tmp_path / "table").rglob("part-*")
    }
    assert list_committed_files(str(tmp_path / "table")) == files
    assert sum(int(done.written.files.sum()) for done in ran.batches if done.written) == len(files)
    data = inspect(ran.job.checkpoint).data()
    assert [batch["written_files"] for batch in data["batches"]] == [
        int(done.written.files.sum()) for done in ran.batches if done.written
    ]
    assert sum(part["last_batch"]["written_bytes"] for part in data["partitions"]) > 0


@pytest.mark.slow
def test_bytes_that_no_folder_can_be_named_by_are_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    codes = ["YQ==", "/wA=", "w6k=", None]  # the second is no UTF-8
    write_lines(tmp_path / "in", "0.json", [{"c": code, "n": n} for n, code in enumerate(codes)])
    ran = run(
        spark,
        tmp_path,
        decode={"type": "json", "schema": "c BINARY, n INT"},
        operator={"type": "rows"},
        sink={"partition_by": ["c"]},
    )
    assert ran.rejected == {"partition_value_unusable": 1}
    read = spark.read.schema("n INT, c BINARY").parquet(str(tmp_path / "table")).collect()
    assert {row["n"]: row["c"] for row in read} == {0: b"a", 2: "é".encode(), 3: None}


@pytest.mark.slow
def test_a_writer_with_more_files_has_fewer_bytes(spark: SparkSession, tmp_path: Path) -> None:
    names = ["hot"] * 3000 + [f"c{number % 97}" for number in range(1000)]
    at = "2026-01-01T00:00:00Z"
    rows = [{"country": name, "amount": n, "at": at} for n, name in enumerate(names)]
    for number in range(2):
        write_lines(tmp_path / "in", f"{number}.json", [*rows, "no object"])
    by_bytes = {"type": "level", "balance": "bytes"}

    ran = run(spark, tmp_path, grouping=by_bytes, sink={"file_cost_bytes": 500})

    sample = sample_job_in(spark, ran.job, None, 10**6)
    assert sample.sizes is not None
    assert set(sample.sizes.tolist()) == {13}
    level = LevelOptions({}, [sample.sizes], sample.file_cost)
    assert predict_level([KeyBatch.from_hashes(sample.hashes)], level).slowest_over_mean > 1.1
    # How many tasks share the cost is known from the second batch on.
    done = ran.batches[1]
    assert done.stats is not None
    assert done.written is not None
    work = 13 * done.stats.records + 500 * done.written.files
    assert work.max() < 1.03 * work.mean()
    assert rows_of(spark, tmp_path / "table") == expected(rows + rows)


@pytest.mark.slow
def test_a_restart_with_another_grouping_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    records = [events(seed, 200) for seed in range(3)]
    by_bytes = {"type": "level", "balance": "bytes", "target_file_bytes": 200}
    groupings: list[tuple[dict[str, Any], int]] = [
        (by_bytes, 4),
        ({"type": "local"}, 3),
        ({"type": "shuffle"}, 2),
    ]
    for number, (grouping, partitions) in enumerate(groupings):
        write_lines(tmp_path / "in", f"{number}.json", records[number])
        run(spark, tmp_path, grouping=grouping, partitions=partitions)

    assert rows_of(spark, tmp_path / "table") == expected([*chain(*records)])


@pytest.mark.slow
def test_a_table_of_others_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", "0.json", events(1, 50))
    first = run(spark, tmp_path)
    assert_predicted(spark, first)
    table = f"table: {tmp_path / 'table'}:"
    sink = first.job.sinks[0]
    # Spark would take the other checkpoint's batch 0 for one that it has written.
    other = first.job.model_copy(update={"checkpoint": str(tmp_path / "other")})
    assert [problem.partition(", and")[0] for problem in sink.problems(other)] == [
        f"{table} has batches of another checkpoint"
    ]
    named = first.job.model_copy(update={"name": "second"})
    assert [problem.partition(", and")[0] for problem in sink.problems(named)] == [
        f'{table} belongs to the job "totals"'
    ]
    assert list(sink.problems(first.job)) == []

    columns = {"country": "country", "amount": "cast(amount AS STRING)", "new": "1", "at": "at"}
    with pytest.raises(ExternalError) as error:
        run(
            spark,
            tmp_path,
            operator={"type": "rows", "columns": columns},
            sink={"partition_by": []},
        )
    assert [line.removeprefix(table) for line in str(error.value).splitlines()] == [
        (
            " is partitioned by country, day, and partition_by says nothing; change it back, or"
            " name another folder"
        ),
        " column amount is INT there and STRING in the rows; cast it, or name another folder",
        " has no column new; write schema_changes: merge to add it",
        " has a column key, day that the rows lack; write schema_changes: merge to leave it null",
    ]
    write_lines(tmp_path / "in", "1.json", events(2, 50))
    columns = {"country": "country", "new": "1", "at": "at"}
    run(
        spark,
        tmp_path,
        operator={"type": "rows", "columns": columns},
        sink={"schema_changes": "merge"},
    )
    read = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "table"))
    assert read.where("new = 1 AND amount IS NULL").count() == 50
    owner = read_owner(str(tmp_path / "table"))
    assert owner is not None
    assert {"amount", "key", "new"} <= set(owner.layout.columns)


@pytest.mark.slow
def test_a_table_keeps_its_spelling_whatever_case_the_job_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", "0.json", events(1, 50))
    run(spark, tmp_path)
    write_lines(tmp_path / "in", "1.json", events(2, 50))
    spelled = {name.upper(): text for name, text in COLUMNS.items()}
    run(
        spark,
        tmp_path,
        operator={"type": "rows", "columns": spelled, "where": "amount >= 0"},
        sink={"partition_by": ["COUNTRY", "date(at) AS Day"]},
    )

    assert rows_of(spark, tmp_path / "table") == expected(events(1, 50) + events(2, 50))
    files = list_committed_files(str(tmp_path / "table"))
    assert {name.partition("=")[0] for name in files} == {"country"}
    assert {pq.read_schema(tmp_path / "table" / name).names[0] for name in files} == {"amount"}
