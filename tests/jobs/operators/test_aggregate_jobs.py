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
PER_USER = {
    "type": "aggregate",
    "key": {"user": "user_id", "page": "upper(page)"},
    "where": "amount > 0",
    "columns": {
        "events": "count(*)",
        "revenue": "sum(amount)",
        "slowest": "max(latency_ms)",
        "mean": "sum(amount) / count(*)",
        "records": "count_if(latency_ms > 100)",
        "first_seen": "min(at)",
    },
}
PER_COUNTRY = {
    "type": "aggregate",
    "key": "country",
    "columns": {
        "latency": {"quantiles": "latency_ms", "at": 0.99},
        "users": {"distinct": "user_id"},
    },
}


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


def per_user(rows: list[dict[str, Any]]) -> dict[Any, tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in rows:
        if Decimal(row["amount"]) > 0:
            groups[row["at"][:16], row["user_id"], row["page"].upper()].append(row)
    return {
        key: (
            len(group),
            sum(Decimal(row["amount"]) for row in group),
            max(row["latency_ms"] for row in group),
            sum(row["latency_ms"] > 100 for row in group),
            min(row["at"] for row in group),
        )
        for key, group in groups.items()
    }


def read(ran: Ran) -> dict[Any, tuple[Any, ...]]:
    read = {}
    for row in ran.rows:
        start = row["window_start"].isoformat()[:16]
        assert row["mean"] == pytest.approx(row["revenue"] / row["events"])
        read[start, row["user"], row["page"]] = (
            row["events"],
            row["revenue"],
            row["slowest"],
            row["records"],
            row["first_seen"].isoformat(),
        )
    return read


def test_totals_of_a_users_own_are_those_of_python_and_accounts_balance(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = events(600)
    unusable = [{**rows[0], "user_id": None}, {**rows[1], "page": None}]
    write_lines(tmp_path / "in", "1.json", [*rows[:300], *unusable])
    write_lines(tmp_path / "in", "2.json", rows[300:])
    changes: dict[str, Any] = {
        "decode": {"type": "json", "schema": SCHEMA},
        "operator": PER_USER,
        "where": "country != 'jp'",
        "window": MINUTE,
        "lateness": "1 hour",
    }
    used = [row for row in rows if row["country"] != "jp"]
    expected = per_user(used)

    routed = Ran(spark, tmp_path, "routed", grouping={"type": "level"}, **changes)
    assert read(routed) == expected
    assert list(routed.types)[:5] == ["window_start", "window_end", "user", "page", "events"]
    rejected = sum(row["country"] != "jp" and Decimal(row["amount"]) > 0 for row in rows[:2])
    assert routed.rejected == ({"null_key": rejected} if rejected else {})
    counted = [done.accounts for done in routed.batches if done.has_rows]
    assert [each.balance for each in counted] == [0, 0]
    assert sum(each.read for each in counted) == 602
    inspected = inspect(routed.job.checkpoint).data()["batches"]
    assert [each["filtered_records"] for each in inspected] == [each.filtered for each in counted]
    assert sum(each.counted for each in counted) == sum(value[0] for value in expected.values())

    plain = Ran(spark, tmp_path, "plain", grouping={"type": "none"}, **changes)
    assert read(plain) == expected
    assert plain.types == routed.types


def test_sketches_answer_for_skewed_countries(spark: SparkSession, tmp_path: Path) -> None:
    rows = events(3_000)
    write_lines(tmp_path / "in", "1.json", rows)
    answers = {}
    for grouping in ("shuffle", "none"):
        ran = Ran(
            spark,
            tmp_path,
            grouping,
            grouping={"type": grouping},
            decode={"type": "json", "schema": SCHEMA},
            operator=PER_COUNTRY,
            window={"type": "none"},
            lateness=None,
        )
        assert len(ran.rows) == 3
        answers[grouping] = {row["country"]: (row["latency"], row["users"]) for row in ran.rows}
    for answer in answers.values():
        for country, (latency, users) in answer.items():
            own = [row for row in rows if row["country"] == country]
            latencies = np.array([row["latency_ms"] for row in own])
            below, not_above = (latencies < latency).mean(), (latencies <= latency).mean()
            assert below - 0.0134 <= 0.99 <= not_above + 0.0134
            assert users == len({row["user_id"] for row in own})


def test_a_float_sum_is_refused_by_its_type_before_anything_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", "1.json", events(1))
    operator = {**PER_COUNTRY, "columns": {"total": "sum(latency_ms + 1)"}}
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
