"""Records as Spark reads them, before they are decoded."""

import pytest
from pyspark.sql import SparkSession

from unskew.jobs.query.source import read_static

pytestmark = pytest.mark.spark


def test_sample_records_are_read_without_a_python_worker(spark: SparkSession) -> None:
    records = read_static(spark, [b"a", b"\xff"])
    plan = records._jdf.queryExecution().executedPlan().toString()
    assert ("LocalTableScan" in plan, "ExistingRDD" in plan) == (True, False)
    rows = [tuple(row)[:5] for row in records.collect()]
    assert rows == [(None, b"a", None, 0, 0), (None, b"\xff", None, 0, 1)]
    assert read_static(spark, []).collect() == []
