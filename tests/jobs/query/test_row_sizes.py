"""The bytes of a table's rows, by which `level` balances writers with `balance: bytes`."""

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from unskew import load_job, route
from unskew.grouping.errors import GroupingError
from unskew.jobs.operators.base import KEY_HASH
from unskew.jobs.query import source
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.prepare_rows import SIZE

pytestmark = pytest.mark.spark

SCHEMA = "country STRING, text STRING, n INT, price DECIMAL(9,2), tags ARRAY<STRING>, raw BINARY"
BYTES = {"balance": "bytes"}


def test_writers_get_equal_bytes_of_what_is_written_into_files(spark: SparkSession) -> None:
    table = {"type": "table", "format": "parquet", "path": "t", "partition_by": ["country"]}
    job = load_job(
        "events_to_delta",
        {
            "operator": {"type": "rows"},
            "decode": {"type": "json", "schema": SCHEMA},
            "sinks": [table],
            "grouping": {"type": "level", **BYTES},
        },
    )
    records = [
        {"country": "somewhere", "text": "é1", "n": 5, "price": 1.25, "tags": ["a", "b"]},
        {"country": None, "raw": "AAEC"},
        *[{"country": f"c{number % 7}", "text": "x" * (number % 7) ** 3} for number in range(998)],
    ]
    lines = source.read_static(spark, [json.dumps(each).encode() for each in records])
    prepared, _ = prepare_records(decode(lines, job.decode, source.COLUMNS), job)

    routed = route(prepared, key=KEY_HASH, size=SIZE, partitions=4, options=BYTES)
    rows = routed.select("row_country", SIZE, sf.spark_partition_id().alias("at")).collect()

    sizes = {row["row_country"]: row[SIZE] for row in rows}
    fixed = 4 + 16  # the number and the decimal, which have theirs also where they are null
    assert [sizes["somewhere"], sizes[None]] == [3 + fixed + len("[a, b]"), fixed + 3]
    assert sizes["c6"] == fixed + 6**3
    loads = [sum(row[SIZE] for row in rows if row["at"] == at) for at in range(4)]
    tasks = lines.rdd.getNumPartitions()
    assert max(loads) - sum(loads) / 4 < tasks * 4 * (fixed + 6**3)
    assert max(loads) < 1.1 * sum(loads) / 4


def test_route_asks_for_the_sizes(spark: SparkSession) -> None:
    with pytest.raises(GroupingError, match="level: size: missing, but needed by balance: bytes"):
        route(spark.range(3), key="id", options=BYTES)
