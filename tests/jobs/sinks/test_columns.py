"""Sinks that choose and rename columns, and sinks that are a function of the user's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import Ran, job_over, write_lines
from unskew.config.errors import UsageError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.sinks.base import Batch
from unskew.jobs.sinks.kafka import KafkaSink, make_kafka_rows
from unskew.jobs.sinks.registry import make_sinks
from unskew.jobs.sinks.user_function import SinkFunctionError

CODE = """
import json
from pathlib import Path


def write(results, batch_id, folder="."):
    rows = sorted(list(row.asDict().items()) for row in results.collect())
    Path(folder, f"{batch_id}.json").write_text(json.dumps(rows, default=str))


def fail(results, batch_id):
    raise ValueError(f"not\\n batch {batch_id}")


def without_batch(results):
    pass
"""
KAFKA = {"type": "kafka", "topic": "counts", "bootstrap_servers": "127.0.0.1:9092"}
POSTGRES = {"type": "postgres", "url": "jdbc:postgresql:x", "table": "t", "user": "u"}
MEMORY = {"type": "memory", "table": "totals"}


def job_with(folder: Path, *sinks: dict[str, Any], **changes: Any) -> Job:
    (folder / "alerts.py").write_text(CODE)
    files = [
        {**sink, "file": str(folder / "alerts.py")} if "function" in sink else sink
        for sink in sinks
    ]
    return load_job("word_count", {"sinks": files, "checkpoint": str(folder / "c"), **changes})


def function(name: str, **options: Any) -> dict[str, Any]:
    return {"type": "python", "function": name, "options": options}


@pytest.mark.parametrize(
    ("sink", "line"),
    [
        (
            {**MEMORY, "columns": ["word", "count"]},
            'sinks[0].columns[0]: no result of operator.type word_count has a column "word"',
        ),
        (
            {**MEMORY, "columns": {"words": "coun"}},
            'sinks[0].columns.words: no result of operator.type word_count has a column "coun"',
        ),
        (
            {**KAFKA, "columns": {"word": "key", "n": "count"}},
            "sinks[0].columns: without window_start, window_end the sink cannot tell which result",
        ),
        ({**POSTGRES, "columns": ["count"]}, "without window_start, window_end, key the sink"),
        ({**MEMORY, "columns": {"n": "count", "N": "key"}}, 'names that are all different ("N")'),
        ({**MEMORY, "columns": []}, "sinks[0].columns"),
        (function("writ"), 'no such function in {file} (got "writ"); did you mean "write"?'),
        (function("write", channel=1), "sinks[0].options.channel: unknown key"),
        (function("without_batch"), "write def without_batch(results, batch_id)"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, sink: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError) as raised:
        job_with(tmp_path, sink)
    (problem,) = raised.value.problems
    assert line.format(file=tmp_path / "alerts.py") in problem


def test_rows_have_columns_of_their_own(tmp_path: Path) -> None:
    changes = {"operator": {"type": "rows"}, "window": {"type": "none"}, "lateness": None}
    with pytest.raises(UsageError, match=r"columns contradicts operator\.type rows"):
        job_with(tmp_path, {**MEMORY, "columns": ["value"]}, **changes)


def test_a_function_that_raises_is_named_with_its_line(tmp_path: Path) -> None:
    job = job_with(tmp_path, function("fail"))
    (sink,) = make_sinks(job)
    assert job.sinks[0].files() == [str(tmp_path / "alerts.py")]
    with pytest.raises(SinkFunctionError) as raised:
        sink.write(None, Batch(3, job, None))  # type: ignore[arg-type]
    assert str(raised.value) == f"sink fail: ValueError: not batch 3 ({tmp_path}/alerts.py:12)"


@pytest.mark.spark
def test_each_sink_gets_its_own_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", "1.json", [{"text": "to be to", "at": START.isoformat()}])
    (tmp_path / "alerts.py").write_text(CODE)
    to_function = {**function("write", folder=str(tmp_path)), "file": str(tmp_path / "alerts.py")}
    sinks = [
        {**MEMORY, "columns": {"word": "key", "n": "count"}},
        {**to_function, "columns": ["count", "key"]},
    ]
    operator = {"type": "word_count", "text": "text"}
    ran = Ran(spark, tmp_path, "ran", sinks=sinks, operator=operator)
    assert ran.types == {"word": "string", "n": "bigint", "batch_id": "int"}
    assert sorted((row["word"], row["n"]) for row in ran.rows) == [("be", 1), ("to", 2)]
    assert json.loads((tmp_path / "0.json").read_text()) == [
        [["count", 1], ["key", "be"]],
        [["count", 2], ["key", "to"]],
    ]

    names = {"word": "key", "from": "window_start", "to": "window_end"}
    kafka = {**KAFKA, "columns": names}
    (sink,) = make_sinks(
        job_over({"type": "files", "path": str(tmp_path / "in")}, tmp_path, "k", sinks=[kafka])
    )
    assert isinstance(sink, KafkaSink)
    result = spark.sql("SELECT 1 AS window_start, 2 AS window_end, 'be' AS key, 5L AS count")
    (record,) = make_kafka_rows(sink.choose(result, ran.job), sink.result_key(ran.job)).collect()
    assert json.loads(record["key"]) == {"from": 1, "to": 2, "word": "be"}
    assert json.loads(record["value"]) == {"word": "be", "from": 1, "to": 2}
