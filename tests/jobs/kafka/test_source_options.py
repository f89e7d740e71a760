"""The options with which Spark's connector reads a job's topics."""

import pytest
from pyspark.sql import SparkSession

from unskew import load_job
from unskew.jobs.query.source import FETCH_WAIT, make_kafka_options

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("options", "wait"), [({}, "1"), ({FETCH_WAIT: "250"}, "250"), ({"kafka.client.id": "x"}, "1")]
)
def test_at_the_topics_end_a_fetch_waits_as_long_as_the_job_says_or_hardly(
    spark: SparkSession, options: dict[str, str], wait: str
) -> None:
    job = load_job("word_count", {"checkpoint": "unused", "source.options": options})
    made = make_kafka_options(job.source, spark)  # type: ignore[arg-type]
    assert made[FETCH_WAIT] == wait
    assert options.items() <= made.items()
