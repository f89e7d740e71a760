"""A job goes on from a checkpoint that the version before wrote."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.checkpoints import REPORTS_OF_VERSION_3, copy_checkpoint
from tests.support.running.in_process import Ran, utc, write_lines
from unskew.jobs.observe.inspection import inspect

pytestmark = pytest.mark.spark

WINDOW = datetime.fromisoformat("2026-01-01T00:01:00")


def _grouping() -> dict[str, Any]:
    """The grouping as the job had it: its defaults may be others now."""
    identity = json.loads((REPORTS_OF_VERSION_3 / "unskew.json").read_text())
    grouping: dict[str, Any] = identity["routing"]["grouping"]
    return grouping


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with utc():
        yield


def test_totals_routing_and_dead_letters_go_on(spark: SparkSession, tmp_path: Path) -> None:
    copy_checkpoint(REPORTS_OF_VERSION_3, tmp_path / "checkpoints" / "older", tmp_path / "in")
    spark.catalog.dropTempView("totals")  # another test's, which this job would go on from
    write_lines(tmp_path / "in", "2.json", [{"at": "2026-01-01T00:01:30Z", "text": "the the a"}])
    ran = Ran(
        spark,
        tmp_path,
        "older",
        operator={"type": "word_count", "text": "text"},
        decode={"type": "json", "schema": "text STRING, at TIMESTAMP"},
        merge={"partitions": 1, "output": "update"},
        grouping=_grouping(),
    )
    # The version before counted 24 and 12 of this window.
    totals = {row["key"]: row["count"] for row in ran.rows if row["window_start"] == WINDOW}
    assert totals == {"the": 26, "a": 13}
    batches = inspect(ran.job.checkpoint).data()["batches"]
    assert [(batch["batch"], batch["records"]) for batch in batches] == [(0, 48), (1, 48), (3, 3)]
    assert [batch["dead_letters_published"] for batch in batches] == [True, True, True]
    (dead_letters,) = (tmp_path / "bad" / "batch_id=1").glob("*.json")
    assert json.loads(dead_letters.read_text())["reason"] == "not_decoded"
    assert list(ran.journal.rejected(1)) == []
