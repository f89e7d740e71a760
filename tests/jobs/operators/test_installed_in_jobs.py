"""An operator of a user's own: found by entry point, sent to tasks, timed, merged."""

import json
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.support.installed import install_module
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.engine.service import Service

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODULE = '''
from typing import Annotated

from pydantic import Field

from unskew import OperatorOptions, RowOperator


class LongestOptions(OperatorOptions):
    """The longest text of each user."""

    least: Annotated[int, Field(ge=0)] = 0
    """Shorter texts are as long as this."""


class Longest(RowOperator):
    Options = LongestOptions
    key = "user"
    inputs = {"text": "text"}
    reject_rules = {"no_text": "text is null"}
    partial_columns = {"longest": "INT", "hours": "ARRAY<TIMESTAMP>"}
    merge = {"longest": "max(longest)", "hours": "array_sort(flatten(collect_list(hours)))"}

    def start(self):
        return {"longest": self.options.least, "hours": []}

    def add(self, state, row):
        state["longest"] = max(state["longest"], len(row.text))
        state["hours"].append(row.event_time)
        return state

    def result(self, state):
        return state
'''


LINES = [
    {"user": "a", "text": "four", "at": "2026-03-01T10:00:00Z"},
    {"user": "a", "text": "seventeen letters", "at": "2026-03-01T09:00:00Z"},
    {"user": "b", "text": "-", "at": "2026-03-01T08:00:00Z"},
    {"user": "b", "at": "2026-03-01T08:00:00Z"},
    {"user": "b", "text": "when?"},
]


@pytest.fixture
def installed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's operator, as pip would leave it, here and with Spark's workers."""
    entry_points = "[unskew.operators]\nlongest = user_longest:Longest\n"
    module = install_module(tmp_path, monkeypatch, "user_longest", entry_points, MODULE)
    spark.sparkContext.addPyFile(str(module))


def job_of(folder: Path, grouping: str) -> Job:
    (folder / "in").mkdir()
    (folder / "in" / "1.json").write_text("\n".join(map(json.dumps, LINES)))
    settings = {
        "source": {"type": "files", "path": str(folder / "in")},
        "decode": {"type": "json", "schema": "user STRING, text STRING, at STRING"},
        "operator": {"type": "longest", "least": 2},
        "event_time": "at",
        "grouping": {"type": grouping},
        "partitions": 2,
        "window": {"type": "none"},
        "lateness": None,
        "merge": {"partitions": 1},
        "trigger": {"type": "available_now"},
        "sinks": [{"type": "memory", "table": "longest"}],
        "dead_letters": {"type": "files", "path": str(folder / "dead_letters")},
        "checkpoint": str(folder / "checkpoint"),
    }
    return load_job("word_count", settings)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("grouping", ["shuffle", "none"])
def test_an_installed_operator_runs(spark: SparkSession, tmp_path: Path, grouping: str) -> None:
    service = Service(job_of(tmp_path, grouping), spark)
    service.run()

    rows = spark.table("longest").orderBy("key").collect()
    assert [(row.key, row.longest, [at.hour for at in row.hours]) for row in rows] == [
        ("a", 17, [9, 10]),
        ("b", 2, [8]),
    ]
    reports = [PartitionReport.from_snapshot(kept) for kept in service.journal.reports(0).values()]
    rejected = {reason: count for report in reports for reason, count in report.rejected.items()}
    assert rejected == {"no_text": 1, "no_event_time": 1}
    assert np.concatenate([report.heavy_seconds for report in reports]).min() > 0
