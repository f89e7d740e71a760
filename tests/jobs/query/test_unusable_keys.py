"""Which keys of a record can be used, what its dead letter says, and which rows carry it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from unskew import load_job
from unskew.jobs.operators.hashtags import Hashtags
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query import source
from unskew.jobs.query.decode import decode
from unskew.jobs.query.prepare import REJECTED, prepare

pytestmark = pytest.mark.spark

LONG, NULL = "key_too_long", "null_key"
NOW = datetime.now(UTC)
CASES: list[tuple[list[str | None], str | None]] = [
    (["a", "bb"], None),
    (["a", ""], None),
    (["four", "five"], None),
    (["a", None], NULL),
    (["", None, "b"], NULL),
    (["longer", "a"], LONG),
    (["a", None, "longer"], LONG),
    (["ééé", "a"], LONG),
    (["éé", "éé"], None),
    (["a\0b", "c"], None),
    (["lon\0ger", "a"], LONG),
    (["ÿÿ", "ÿ", "ÿÿ"], None),
    (["ÿÿÿ", "a"], LONG),
    (["a", None, "b", "a", None], NULL),
    (["longer", "a", "longer", "a"], LONG),
]


class _AllTags(Hashtags):
    """Leaves tags as they are."""

    @property
    def key(self) -> str:
        return self.options.hashtags


class _BinaryTags(Hashtags):
    """Makes keys of hexadecimal digits, whatever bytes they are."""

    @property
    def key(self) -> str:
        return f"transform({self.options.hashtags}, each -> cast(unhex(each) as string))"


def prepared(
    spark: SparkSession, tags: list[list[str | None]], operator_class: type[Hashtags] = _AllTags
) -> Any:
    """The rows of records with these keys, of which the longest may have five bytes."""
    rows = [
        (None, json.dumps({"tags": each, "user": "u"}).encode(), "t", 0, number, NOW, False)
        for number, each in enumerate(tags)
    ]
    raw = spark.createDataFrame(
        rows,
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT,"
        f" timestamp TIMESTAMP, {source.STAMPED_ON_ARRIVAL} BOOLEAN",
    )
    job = load_job(
        "word_count",
        {
            "decode": {"type": "json", "schema": "tags ARRAY<STRING>, user STRING"},
            "operator": {"type": "hashtags", "hashtags": "tags", "user": "user"},
            "max_key_bytes": "5 B",
            "checkpoint": "unused",
        },
    )
    operator = operator_class.from_options(job.operator)
    return prepare(decode(raw, job.decode, source.COLUMNS), operator, job)[0]


def test_usable_keys_are_rows_and_all_others_are_one_dead_letter(spark: SparkSession) -> None:
    rows = prepared(spark, [keys for keys, _ in CASES]).collect()

    judged: dict[int, str] = {}
    for row in rows:
        if row.rejected is not None:
            assert row.rejected.offset not in judged
            judged[row.rejected.offset] = row.rejected.reason
    expected = {number: reason for number, (_, reason) in enumerate(CASES) if reason}
    assert judged == expected
    usable = [
        key for keys, _ in CASES for key in keys if key is not None and len(key.encode()) <= 5
    ]
    assert sorted(row.key for row in rows if row.rejected is None) == sorted(usable)


def test_a_key_that_is_no_text_does_not_hide_how_long_it_is(spark: SparkSession) -> None:
    tags: list[list[str | None]] = [["ff" * 6, "61"], ["61ff62", "ff" * 3], ["61ff62636465", "61"]]
    rows = prepared(spark, tags, _BinaryTags)
    judged = rows.selectExpr("hex(key) as key", "rejected.reason as why").collect()

    assert sorted(row.key for row in judged if row.why is None) == ["61", "61", "61FF62", "FFFFFF"]
    assert [row.why for row in judged if row.why is not None] == [LONG, LONG]


@pytest.mark.parametrize(("on_error", "carried"), [("stop", None), ("dead_letter", ("t", 3, 7))])
def test_a_row_carries_its_record_only_where_the_operator_may_reject_it(
    spark: SparkSession, on_error: str, carried: tuple[str, int, int] | None
) -> None:
    record = json.dumps({"text": "one"}).encode()
    raw = spark.createDataFrame(
        [(None, record, "t", 3, 7, NOW, False)],
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT,"
        f" timestamp TIMESTAMP, {source.STAMPED_ON_ARRIVAL} BOOLEAN",
    )
    schema = {"type": "json", "schema": "text STRING"}
    changes = {
        "decode": schema,
        "operator.text": "text",
        "event_time": "timestamp",
        "checkpoint": "unused",
    }
    job = load_job("word_count", {**changes, "on_error": on_error, "max_future": "off"})
    rows = decode(raw, job.decode, source.COLUMNS)

    made, _ = prepare(rows, make_operator(job.operator), job)

    (row,) = made.select("key", REJECTED).collect()
    assert row.key == "one"
    rejected = row[REJECTED]
    where = None if rejected is None else (rejected.topic, rejected.partition, rejected.offset)
    assert where == carried
