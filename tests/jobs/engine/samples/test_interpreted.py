"""`unskew test` has Spark interpret expressions where `unskew run` compiles them: the same rows."""

import json
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from unskew.config.loader import load_job
from unskew.config.shipped import list_shipped_names
from unskew.jobs.engine.samples.try_out import INTERPRETED
from unskew.jobs.engine.session import change_settings
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.source import COLUMNS, STAMPED_ON_ARRIVAL

pytestmark = pytest.mark.spark

TRADE = {"symbol": "ACME", "price": 10.25, "volume": 3, "traded_at": "2026-01-01T00:00:07Z"}
POST = {"user": "u", "text": "x", "hashtags": ["a", "b"], "posted_at": "2026-01-01T00:00:07Z"}
RECORDS = [
    *[TRADE | change for change in ({}, {"price": 1e3}, {"price": "1e99999999"}, {"volume": -1})],
    *[TRADE | change for change in ({"symbol": None}, {"traded_at": None}, {"volume": "many"})],
    *[TRADE | {"traded_at": at} for at in ("2999-01-01T00:00:00Z", "12999-01-01T00:00:00Z")],
    *[POST | change for change in ({}, {"user": None}, {"hashtags": []}, {"hashtags": [None]})],
    *[
        POST | {"hashtags": tags}
        for tags in (["x" * 3000], ["a", ""], [str(n) for n in range(999)])
    ],
]
VALUES = [json.dumps(record).encode() for record in RECORDS]
VALUES += [b"to be or not to be", b"", b"{", b'{"symbol": "A"} {"symbol": "B"}', b"\xff", b"[]"]


def read_rows(
    spark: SparkSession, name: str, grouping: str, settings: Mapping[str, str]
) -> list[str]:
    """The rows of a shipped job over `VALUES`, then its totals where Spark computes them."""
    job = load_job(name, {"checkpoint": "unused", "grouping": {"type": grouping}})
    with change_settings(spark, settings):
        raw = spark.createDataFrame(
            [(bytearray(value), number) for number, value in enumerate(VALUES)],
            "value BINARY, offset BIGINT",
        ).selectExpr(
            *("null as key", "value", "'t' as topic", "0 as partition", "offset"),
            "timestamp '2026-01-01 00:00:09' as timestamp",
            f"false as {STAMPED_ON_ARRIVAL}",
        )
        now = sf.lit("2026-01-01T00:00:10Z").cast("timestamp")
        prepared, operator = prepare_records(decode(raw, job.decode, COLUMNS), job, now)
        tables = [prepared]
        if grouping == "none":
            totals = [sf.expr(text).alias(made) for made, text in operator.direct.items()]
            tables.append(prepared.groupBy("pane", *operator.keys).agg(*totals))
        return [
            row[0]
            for table in tables
            for row in sorted(table.select(sf.to_json(sf.struct("*"))).collect())
        ]


@pytest.mark.parametrize("name", list_shipped_names())
def test_interpreted_expressions_make_the_rows_that_compiled_ones_do(
    spark: SparkSession, name: str
) -> None:
    grouping = "level" if name == "events_to_delta" else "none"
    compiled = {
        key: "true" if key.endswith("wholeStage") else "CODEGEN_ONLY" for key in INTERPRETED
    }

    interpreted = read_rows(spark, name, grouping, INTERPRETED)

    assert interpreted == read_rows(spark, name, grouping, compiled)
    rejected = [row for row in interpreted if '"rejected":' in row]
    assert 2 <= len(rejected) < len(interpreted)
