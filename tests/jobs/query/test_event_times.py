"""Records whose event time no calendar has: refused, with nothing else of the job the worse."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.jobs.operators import test_installed_in_jobs as longest
from tests.support.oracles import START, WINDOWS
from tests.support.running.in_process import Ran, write_lines
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.engine.service import Service

pytestmark = pytest.mark.spark

installed = longest.installed
# Milliseconds where seconds are read, and times just before and after those that are taken.
BEYOND = [1_772_366_400_000, "0001-01-01T23:59:59Z", "9999-12-31T00:00:00Z"]
WITHIN = ["0001-01-02T00:00:00Z", "9999-12-30T23:59:59Z"]


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_the_watermark_does_not_see_them(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    for batch in range(2):
        at = (START + timedelta(minutes=batch)).isoformat()
        rows = [{"text": "good", "at": at}, *({"text": "bad", "at": time} for time in BEYOND)]
        write_lines(tmp_path / "in", f"{batch}.json", rows)
    ran = Ran(
        spark,
        tmp_path,
        grouping,
        operator={"type": "word_count", "text": "text"},
        grouping={"type": grouping},
        window=WINDOWS["tumbling"],
        lateness="10 s",
    )
    assert [(row["key"], row["count"]) for row in ran.rows] == [("good", 1), ("good", 1)]
    if grouping != "none":
        assert ran.rejected == {"event_time_out_of_range": 2 * len(BEYOND)}


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("grouping", ["shuffle", "none"])
def test_an_operator_in_python_never_gets_them(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    job = longest.job_of(tmp_path, grouping).model_copy(update={"max_future": None})
    service = Service(job, spark)
    times = ["+58133-01-01T00:00:00Z", *BEYOND[1:], *WITHIN]
    lines = [json.dumps({"user": "c", "text": "text", "at": at}) for at in times]
    (tmp_path / "in" / "2.json").write_text("\n".join(lines))
    service.run()

    rows = spark.table("longest").where("key = 'c'").selectExpr("size(hours) as hours").collect()
    assert [row.hours for row in rows] == [len(WITHIN)]
    reports = [
        PartitionReport.from_snapshot(report) for report in service.journal.reports(0).values()
    ]
    assert sum(report.rejected.get("event_time_out_of_range", 0) for report in reports) == 3
