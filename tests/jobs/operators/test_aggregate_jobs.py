"""Whole jobs with `aggregate`: a user's questions in YAML alone, and the shipped jobs' own."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import OPERATORS, START, WINDOWS, records
from tests.support.running.in_process import Ran, utc, write_lines
from unskew.config.errors import UsageError
from unskew.jobs.observe.inspection import inspect

pytestmark = pytest.mark.spark

SCHEMA = (
    "user_id BIGINT, country STRING, amount DECIMAL(10, 2), latency_ms DOUBLE, page STRING,"
    " at TIMESTAMP"
)
MINUTE = {"type": "tumbling", "duration": "1 minute"}
PER_PAGE = {
    "type": "aggregate",
    "key": {"country": "country", "page": "upper(page)"},
    "where": "amount > 0",
    "columns": {
        "events": "count(*)",
        "revenue": "sum(amount)",
        "slowest": "max(latency_ms)",
        "mean": "sum(amount) / count(*)",
        "records": "count_if(latency_ms > 100)",
        "first_seen": "min(at)",
        "latency": {"quantiles": "latency_ms", "at": 0.99},
        "users": {"distinct": "user_id"},
    },
}
QUANTILE_BOUND = 0.0134


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with utc():
        yield


def events(count: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(17)
    made = []
    for index in range(count):
        at = START + timedelta(seconds=int(generator.integers(0, 120)))
        made.append(
            {
                "user_id": int(generator.zipf(1.5)) % 40,
                "country": ["de", "fr", "jp"][int(generator.integers(0, 3))],
                "amount": f"{int(generator.integers(-500, 10_000))}.25",
                "latency_ms": float(generator.integers(1, 200)),
                "page": "ab"[index % 2],
                "at": at.isoformat(),
            }
        )
    return made


Groups = dict[Any, list[dict[str, Any]]]


def grouped(rows: list[dict[str, Any]]) -> Groups:
    """The records that the operator's condition keeps, by window and key."""
    groups = defaultdict(list)
    for row in rows:
        if Decimal(row["amount"]) > 0:
            groups[row["at"][:16], row["country"], row["page"].upper()].append(row)
    return groups


def assert_counted(ran: Ran, groups: Groups) -> None:
    names = ("country", "page")
    last = {
        (row["window_start"].isoformat()[:16], *(row[name] for name in names)): row
        for row in ran.rows
    }
    assert last.keys() == groups.keys()
    for key, group in groups.items():
        row = last[key]
        assert row["events"] == len(group)
        assert row["revenue"] == sum(Decimal(each["amount"]) for each in group)
        assert row["mean"] == pytest.approx(row["revenue"] / row["events"])
        assert row["first_seen"].isoformat() == min(each["at"] for each in group)
        assert row["users"] == len({each["user_id"] for each in group})
        latencies = np.array([each["latency_ms"] for each in group])
        assert row["slowest"] == latencies.max()
        assert row["records"] == (latencies > 100).sum()
        below, not_above = (latencies < row["latency"]).mean(), (latencies <= row["latency"]).mean()
        assert below - QUANTILE_BOUND <= 0.99 <= not_above + QUANTILE_BOUND


def test_totals_of_a_users_own_are_those_of_python_and_accounts_balance(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = events(3_000)
    wanted = {**rows[0], "country": "de", "amount": "5.25"}
    unusable = [{**wanted, "country": None}, {**wanted, "page": None}]
    write_lines(tmp_path / "in", "1.json", [*rows[:1_500], *unusable])
    write_lines(tmp_path / "in", "2.json", rows[1_500:])
    changes: dict[str, Any] = {
        "decode": {"type": "json", "schema": SCHEMA},
        "operator": PER_PAGE,
        "where": "country is null or country != 'jp'",
        "window": MINUTE,
        "lateness": "1 hour",
    }
    expected = grouped([row for row in rows if row["country"] != "jp"])

    routed = Ran(spark, tmp_path, "routed", grouping={"type": "level"}, **changes)
    assert_counted(routed, expected)
    assert list(routed.types)[:5] == ["window_start", "window_end", "country", "page", "events"]
    assert routed.rejected == {"null_key": 2}
    batches = [done for done in routed.batches if done.has_rows]
    for done in batches:
        known = done.stats.total + done.filtered_records + sum(done.stats.rejected.values())
        assert done.source_records == known
    assert sum(done.source_records for done in batches) == 3_002
    inspected = inspect(routed.job.checkpoint).data()["batches"]
    filtered = [done.filtered_records for done in batches]
    assert [each["filtered_records"] for each in inspected] == filtered
    counted = sum(done.stats.total - done.late_records for done in batches)
    assert counted == sum(map(len, expected.values()))

    plain = Ran(spark, tmp_path, "plain", grouping={"type": "none"}, **changes)
    assert_counted(plain, expected)
    assert plain.types == routed.types


def test_the_most_frequent_values_of_each_window_over_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    pages = {"a": 50, "b": 30, "c": 20, **{f"rare {number}": 2 for number in range(40)}}
    rows = [
        {"country": "de", "page": page, "at": (START + timedelta(minutes=late)).isoformat()}
        for late in (0, 1)
        for page, count in pages.items()
        for _ in range(count * (1 + late))
    ]
    for batch in range(2):
        write_lines(tmp_path / "in", f"{batch}.json", rows[batch::2])
    ran = Ran(
        spark,
        tmp_path,
        "top",
        decode={"type": "json", "schema": SCHEMA},
        operator={
            "type": "aggregate",
            "key": "country",
            "columns": {"pages": {"top": "page", "k": 3}, "n": "count(*)"},
        },
        grouping={"type": "none"},
        window=MINUTE,
        lateness="1 hour",
    )
    assert len([done for done in ran.batches if done.has_rows]) == 2
    last = {row["window_start"]: row for row in ran.rows}
    assert {
        at: ([(page["item"], page["count"]) for page in row["pages"]], row["n"])
        for at, row in last.items()
    } == {
        START: ([("a", 50), ("b", 30), ("c", 20)], 180),
        START + timedelta(minutes=1): ([("a", 100), ("b", 60), ("c", 40)], 360),
    }


def test_a_float_sum_is_refused_by_its_type_before_anything_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", "1.json", events(1))
    operator = {**PER_PAGE, "columns": {"total": "sum(latency_ms + 1)"}}
    with pytest.raises(UsageError, match=r"columns\.total: latency_ms \+ 1: a sum of DOUBLE"):
        Ran(
            spark,
            tmp_path,
            "refused",
            decode={"type": "json", "schema": SCHEMA},
            operator=operator,
        )


SHIPPED = {
    "word_count": {
        "type": "aggregate",
        "key": r"regexp_extract_all(lower(text), '[\\p{L}\\p{M}\\p{N}\\x27\\u2019]+', 0)",
        "columns": {"count": "count(*)"},
    },
    "vwap": {
        "type": "aggregate",
        "key": {"key": "symbol"},
        "columns": {
            "vwap": (
                "sum(cast(cast(price as decimal(18, 6)) * cast(volume as decimal(18, 6))"
                " as decimal(28, 12))) / cast(sum(cast(volume as decimal(18, 6)))"
                " as decimal(38, 6))"
            ),
            "volume": "cast(sum(cast(volume as decimal(18, 6))) as decimal(38, 6))",
            "trades": "count(*)",
            "high": "max(cast(price as decimal(18, 6)))",
            "low": "min(cast(price as decimal(18, 6)))",
            "open": "first(cast(price as decimal(18, 6)))",
            "close": "last(cast(price as decimal(18, 6)))",
        },
    },
    "hashtags": {
        "type": "aggregate",
        "key": "array_distinct(filter(hashtags, tag -> tag is not null and tag != ''))",
        "columns": {
            "posts": "count(*)",
            "users": {"distinct": "user"},
            "first_seen": "min(at)",
            "last_seen": "max(at)",
        },
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "grouping"), [("word_count", "level"), ("vwap", "none"), ("hashtags", "level")]
)
def test_a_shipped_job_in_yaml_gives_the_same_totals(
    spark: SparkSession, tmp_path: Path, name: str, grouping: str
) -> None:
    rows = records(3, 500)
    write_lines(tmp_path / "in", "1.json", rows[:200])
    write_lines(tmp_path / "in", "2.json", rows[200:])
    changes: dict[str, Any] = {"window": WINDOWS["sliding"], "lateness": "1 hour"}
    shipped = Ran(spark, tmp_path, "shipped", operator=OPERATORS[name], **changes)
    own = Ran(
        spark, tmp_path, "own", operator=SHIPPED[name], grouping={"type": grouping}, **changes
    )
    assert own.last == shipped.last
    assert own.types == shipped.types


@pytest.mark.parametrize("grouping", ["level", "none"])
def test_records_whose_sum_has_more_than_64_bits_stop_no_job(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    most = 2**63 - 1
    batches = [[("a", most), ("a", most), ("b", 1)], [("a", -most), ("b", 2)]]
    for number, batch in enumerate(batches):
        rows = [{"page": page, "user_id": value, "at": START.isoformat()} for page, value in batch]
        write_lines(tmp_path / "in", f"{number}.json", rows)
    columns = {"total": "sum(user_id)", "mean": "avg(user_id)"}
    ran = Ran(
        spark,
        tmp_path,
        grouping,
        decode={"type": "json", "schema": SCHEMA},
        operator={"type": "aggregate", "key": {"page": "page"}, "columns": columns},
        grouping={"type": grouping},
        window={"type": "none"},
        lateness=None,
    )
    assert ran.types["total"] == "bigint"
    totals = [(row["page"], row["total"]) for row in ran.rows]
    assert sorted(totals, key=str) == [("a", most), ("a", None), ("b", 1), ("b", 3)]
    means = {row["page"]: row["mean"] for row in ran.rows if row["total"] is not None}
    assert means == {"a": pytest.approx(most / 3), "b": 1.5}
