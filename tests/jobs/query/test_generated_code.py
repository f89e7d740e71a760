"""What Spark makes of the plan that prepares records: generated code, and no task for no rows."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from unskew import load_job
from unskew.jobs.query import source
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.rejected import pack_rejected

pytestmark = pytest.mark.spark

JOBS = ("word_count", "hashtags", "vwap")
# A longer method is never compiled to machine code.
METHOD_BYTES_MAX = 8000


def plan_of(spark: SparkSession, name: str, condition: str) -> Any:
    """How Spark runs what prepares these records of a shipped job."""
    job = load_job(name, {"checkpoint": "unused"})
    raw = spark.range(1000).where(condition)
    records = raw.selectExpr(
        "cast(null as binary) as key",
        "cast(string(id) as binary) as value",
        "'topic' as topic",
        "0 as partition",
        "id as offset",
        "timestamp_seconds(id) as timestamp",
        f"false as {source.STAMPED_ON_ARRIVAL}",
    )
    prepared, operator = prepare_records(decode(records, job.decode, source.COLUMNS), job)
    return made_of(pack_rejected(prepared, operator))


def made_of(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()


def test_but_for_the_batchs_time_words_are_judged_in_code_that_the_jvm_compiles(
    spark: SparkSession,
) -> None:
    plan = plan_of(spark, "word_count", "id % 2 = 0").executedPlan()
    debug: Any = spark._jvm.org.apache.spark.sql.execution.debug  # type: ignore[union-attr]
    pieces = getattr(getattr(debug, "package$"), "MODULE$").codegenStringSeq(plan)

    sizes = [pieces.apply(each)._3().maxMethodCodeSize() for each in range(pieces.size())]
    assert 0 < max(sizes) < METHOD_BYTES_MAX
    steps = [line.lstrip(" :+-") for line in plan.toString().splitlines()]
    (interpreted,) = [step for step in steps if step and not step.startswith("*(")]
    assert "event_time_in_the_future" in interpreted


@pytest.mark.parametrize("name", JOBS)
def test_of_no_records_spark_plans_no_step(spark: SparkSession, name: str) -> None:
    assert "Project" in plan_of(spark, name, "id % 2 = 0").optimizedPlan().toString()
    plan = plan_of(spark, name, "false").optimizedPlan().toString()
    assert plan.startswith("LocalRelation <empty>")
