"""`open(key)`: what a key costs once is kept across tasks, bounded, closed, counted apart."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.support.running.in_process import Ran
from unskew.config.errors import UsageError
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.models.operator import OperatorOptions
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.commands.project.init import TEMPLATE
from unskew.jobs.operators.base import KEY, Operator
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.operators.user_code.failing_rows import make_partials
from unskew.jobs.operators.user_code.opened import OpenedKeys
from unskew.jobs.operators.user_code.rows import RowOperator
from unskew.jobs.query.partial import PartialStage

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "model_per_customer"
OPENING_SECONDS = 0.1


class Resource:
    closed: ClassVar[list[str]] = []

    def __init__(self, key: str) -> None:
        self.key = key

    def close(self) -> None:
        self.closed.append(self.key)


class Lengths(RowOperator):
    """Adds up the lengths that what is open for each key says."""

    Options = OperatorOptions
    key = "key"
    partial_columns: ClassVar = {"length": "BIGINT"}
    merge: ClassVar = {"length": "sum(length)"}
    opened_in_order: ClassVar[list[str]] = []

    @property
    def _types(self) -> dict[str, pa.DataType]:  # type: ignore[override]
        return {"length": pa.int64()}  # without a Spark that parses them

    def open(self, key: str) -> Resource:
        if key == "missing":
            raise FileNotFoundError(key)
        self.opened_in_order.append(key)
        time.sleep(OPENING_SECONDS)
        return Resource(key)

    def start(self) -> int:
        return 0

    def add(self, state: int, row: Any) -> int:
        return state + len(row.opened.key)

    def result(self, state: int) -> dict[str, int]:
        return {"length": state}


@pytest.fixture(autouse=True)
def _nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.jobs.operators.user_code.opened._OF_THIS_PROCESS", [])
    monkeypatch.setattr(Lengths, "opened_in_order", [])
    monkeypatch.setattr(Resource, "closed", [])


def rows(keys: list[str], **columns: list[Any]) -> pa.Table:
    at = pa.array([datetime(2026, 3, 1, tzinfo=UTC)] * len(keys), pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "key": pa.array(keys, pa.string()),
            "key_hash": pa.array(range(len(keys)), pa.int64()),
            "pane": pa.array([0] * len(keys), pa.int64()),
            "event_time": at,
            **columns,
        }
    )


def run_task(folder: Path, name: str, keys: list[str], open_keys: int) -> PartitionReport:
    """The report of a task over rows with these keys, in this process as in a worker."""
    journal = Journal(str(folder / name))
    fields = [StructField(KEY, StringType()), StructField("length", LongType())]
    stage = PartialStage(
        Lengths(OperatorOptions()), 1, StructType(fields), journal, open_keys=open_keys
    )
    table = rows(keys)
    arrived = table["event_time"]
    record = pa.nulls(len(keys), pa.string())
    table = table.append_column("arrived", arrived).append_column("rejected", record)
    partials = pa.Table.from_batches(list(stage(iter(table.to_batches()))))
    lengths = dict(
        zip(*(partials[column].to_pylist() for column in ("key", "length")), strict=True)
    )
    assert lengths == {key: keys.count(key) * len(key) for key in keys}
    return PartitionReport.from_snapshot(journal.reports(0)[0])


def test_a_later_task_has_what_an_earlier_opened_and_the_time_is_counted_apart(
    tmp_path: Path,
) -> None:
    started = time.perf_counter()
    first = run_task(tmp_path, "first", ["a", "bb", "a", "ccc"], open_keys=3)
    taken = time.perf_counter() - started
    assert (first.open_hits, first.open_misses) == (0, 3)
    assert first.open_seconds >= 3 * OPENING_SECONDS
    assert first.busy_seconds + first.open_seconds <= taken
    assert sum(first.heavy_seconds) <= first.busy_seconds

    second = run_task(tmp_path, "second", ["dddd", "bb", "ccc"], open_keys=3)
    assert (second.open_hits, second.open_misses) == (2, 1)
    assert Resource.closed == ["a"]

    run_task(tmp_path, "third", ["ccc"], open_keys=1)
    assert Resource.closed == ["a", "bb", "ccc", "dddd"]


def test_more_keys_than_there_is_room_for_are_opened_once_a_task(tmp_path: Path) -> None:
    keys = [letter * 2 for letter in "abcdef"]
    run_task(tmp_path, "first", keys * 2, open_keys=4)
    assert Lengths.opened_in_order == keys
    again = run_task(tmp_path, "second", keys * 2, open_keys=4)
    assert (again.open_hits, again.open_misses) == (4, 2)


def test_a_key_that_cannot_be_opened_is_tried_once_a_task() -> None:
    opened, attempts = OpenedKeys(Lengths, OperatorOptions()), []

    def fail(key: str) -> None:
        attempts.append(key)
        raise ConnectionError(key)

    for task in range(2):
        opened.begin_task(2)
        for _ in range(3):
            with pytest.raises(ConnectionError):
                opened.get("a", fail)
        assert opened.counts.misses == 1
        assert len(attempts) == task + 1

    parts = list(make_partials(Lengths(OperatorOptions()), rows(["a", "missing", "a", "missing"])))
    assert [part.rows.num_rows for part in parts if part.error] == [1, 1]
    assert Lengths.opened_in_order == ["a"]


def test_a_value_that_cannot_be_closed_is_given_up_and_the_new_key_opened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = OpenedKeys(Lengths, OperatorOptions(), limit=1)

    def fail(self: Resource) -> None:
        raise ConnectionError(f"{self.key} is gone")

    monkeypatch.setattr(Resource, "close", fail)
    for key in ("a", "b"):
        assert opened.get(key, Resource).key == key
    assert "ConnectionError: a is gone" in capsys.readouterr().err
    assert [key in opened for key in ("a", "b")] == [False, True]
    opened.begin_task(0)
    assert "b" not in opened


CODE = (TEMPLATE / "scoring.py.txt").read_text()
OPENS = CODE.replace(
    "    def start(", "    def open(self, key):\n        return key\n\n    def start("
)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (CODE, "open_keys with a class that has open(self, key); Scoring has none"),
        (
            OPENS.replace("    key =", "    native = True\n    key ="),
            "class: Scoring has open, which plain Spark never calls",
        ),
        (OPENS.replace('"cents"', '"opened"'), "class: Scoring has an input opened"),
    ],
)
def test_what_would_never_be_opened_is_named(tmp_path: Path, code: str, problem: str) -> None:
    (tmp_path / "scoring.py").write_text(code)
    (tmp_path / "job.yaml").write_text((TEMPLATE / "job.yaml.txt").read_text())
    with pytest.raises(UsageError) as raised:
        load_job(tmp_path / "job.yaml", {"operator.open_keys": 5})
    (line,) = raised.value.problems
    assert problem in line


def example_operator(name: str) -> Operator:
    changes = {"operator.class": name, "operator.options.models": str(EXAMPLE / "models")}
    return make_operator(load_job(EXAMPLE / "job.yaml", changes).operator)


@pytest.mark.spark
def test_the_example_scores_by_each_customers_model(spark: SparkSession, tmp_path: Path) -> None:
    assert lint([str(EXAMPLE / "job.yaml")]) == []
    lines = (EXAMPLE / "samples.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "in").mkdir()
    for number, part in enumerate((lines[:4], lines[4:])):
        (tmp_path / "in" / f"{number}.jsonl").write_text("".join(part))
    written = yaml.safe_load((EXAMPLE / "job.yaml").read_text())
    operator = written["operator"] | {"file": str(EXAMPLE / "scoring.py")}
    operator["options"] = {"models": str(EXAMPLE / "models")}
    changes = {"decode": written["decode"], "operator": operator, "event_time": "timestamp"}
    ran = Ran(spark, tmp_path, "ran", window={"type": "none"}, lateness=None, **changes)

    expected = map(json.loads, (EXAMPLE / "expected.jsonl").read_text().splitlines())
    assert ran.last == {(row.pop("key"),): row for row in expected}
    counted = [done.stats.numbers for done in ran.batches if done.stats]
    asked = [int(each["open_hits"].sum() + each["open_misses"].sum()) for each in counted]
    assert asked == [3, 3]
    assert counted[0]["open_misses"].sum() == 3

    table = rows(["anna", "bert", "anna", "zoe"], euros=[12, 100, 30, 3], online=[1, 0, 0, 1])
    by_row, by_table = (
        example_operator(name).partial(table).select(["key", "risk", "highest"]).to_pylist()
        for name in ("Scoring", "ScoringOfTables")
    )
    assert sorted(by_row, key=str) == sorted(by_table, key=str)
    assert len(by_table) == 3
