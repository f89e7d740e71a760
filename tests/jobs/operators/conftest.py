"""One small session for all tests of operators."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from jobs.session import session


@pytest.fixture(scope="session")
def operator_spark() -> Iterator[SparkSession]:
    """A local session with two slots."""
    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    with session("operators", settings) as spark:
        yield spark
