"""`select`: columns made of a record's own, which all behind them see in the place of those."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import Ran, utc, write_lines

pytestmark = pytest.mark.spark

SECONDS = int(START.timestamp())
RECORDS: list[dict[str, Any]] = [
    {"user": "anna", "amount": 3, "second": SECONDS + 1},
    {"user": "Anna", "amount": 4, "second": SECONDS + 59},
    {"user": "anna", "amount": 5, "second": SECONDS + 60},
    {"user": "bert", "amount": 2, "second": SECONDS + 2},
    {"user": "bert", "amount": -9, "second": SECONDS + 2},
    {"user": None, "amount": 9, "second": SECONDS + 3},
]
SELECTED: dict[str, Any] = {
    "decode": {"type": "json", "schema": "user STRING, amount BIGINT, second BIGINT"},
    "where": "amount > 0",
    "select": {
        "name": "upper(user)",
        # As the record has it, also below the column of the same name.
        "amount": "amount * 10",
        "doubled": "amount * 2",
        "at": "timestamp_seconds(second)",
    },
}


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with utc():
        yield


@pytest.mark.parametrize("grouping", ["level", "none"])
def test_new_and_replaced_columns_are_what_the_operator_and_the_times_see(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    write_lines(tmp_path / "in", "0.json", RECORDS)
    ran = Ran(
        spark,
        tmp_path,
        grouping,
        **SELECTED,
        event_time="at",
        window={"type": "tumbling", "duration": "1 minute"},
        operator={
            "type": "aggregate",
            "key": "name",
            "where": "amount > 20",
            "columns": {"n": "count(*)", "total": "sum(amount)", "doubled": "max(doubled)"},
        },
        grouping={"type": grouping},
    )
    results = {(row["name"], row["window_start"]): row for row in ran.rows}
    later = START + timedelta(minutes=1)
    assert {at: (row["n"], row["total"], row["doubled"]) for at, row in results.items()} == {
        ("ANNA", START): (2, 70, 8),
        ("ANNA", later): (1, 50, 10),
    }
    if grouping == "level":
        assert ran.rejected == {"null_key": 1}


@pytest.mark.parametrize("columns", [None, {"who": "lower(name)", "amount": "amount + doubled"}])
def test_a_table_gets_the_selected_columns_or_those_that_its_job_names(
    spark: SparkSession, tmp_path: Path, columns: dict[str, str] | None
) -> None:
    write_lines(tmp_path / "in", "0.json", RECORDS)
    table = {"type": "table", "format": "parquet", "path": str(tmp_path / "table")}
    named = {} if columns is None else {"columns": columns}
    Ran(
        spark,
        tmp_path,
        "rows",
        **SELECTED,
        event_time="timestamp",
        window={"type": "none"},
        lateness=None,
        merge={"partitions": 4, "output": "update"},
        operator={"type": "rows", **named},
        grouping={"type": "level"},
        sinks=[{**table, "partition_by": ["who" if columns else "name"]}],
    )
    rows = spark.read.parquet(str(tmp_path / "table"))
    if columns is None:
        assert set(rows.columns) == {"name", "user", "amount", "second", "doubled", "at"}
        written = sorted(
            (row["name"] or "", row["amount"], row["doubled"]) for row in rows.collect()
        )
        assert written == [
            ("", 90, 18),
            ("ANNA", 30, 6),
            ("ANNA", 40, 8),
            ("ANNA", 50, 10),
            ("BERT", 20, 4),
        ]
    else:
        written = sorted((row["who"] or "", row["amount"]) for row in rows.collect())
        assert written == [("", 108), ("anna", 36), ("anna", 48), ("anna", 60), ("bert", 24)]
