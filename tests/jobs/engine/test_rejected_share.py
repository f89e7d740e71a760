"""A job that rejects more than it may stops with a sentence, its dead letters written."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import Ran, job_over
from unskew.config.errors import ExternalError
from unskew.jobs.engine.rejected_share import RejectedShare

LINE = json.dumps({"text": "a", "at": START.isoformat()})


def share_of(folder: Path, most: float | None) -> RejectedShare:
    dead_letters = {"type": "files", "path": str(folder / "bad"), "max_share": most}
    source = {"type": "files", "path": str(folder / "in")}
    return RejectedShare(job_over(source, folder, "share", dead_letters=dead_letters))


def test_batches_are_taken_together_until_there_are_enough_records(tmp_path: Path) -> None:
    share = share_of(tmp_path, 0.1)
    share.add(500, {"not_utf8": 400})
    with pytest.raises(ExternalError) as raised:
        share.add(500, {"not_utf8": 1, "null_key": 2})
    assert str(raised.value) == (
        "dead_letters.max_share: 40.3% of the last 1,000 records were rejected, more than 10.0%"
        " (most often not_utf8: 401); mend the producer or the job file, and start the job again:"
        " it goes on from its checkpoint"
    )


def test_each_stretch_is_judged_by_itself_and_the_limit_may_be_reached(tmp_path: Path) -> None:
    share = share_of(tmp_path, 0.1)
    for _ in range(20):
        share.add(1000, {"not_utf8": 100})
    with pytest.raises(ExternalError):
        share.add(1000, {"not_utf8": 101})


def test_without_it_nothing_stops(tmp_path: Path) -> None:
    share_of(tmp_path, None).add(1000, {"not_utf8": 1000})


def run(spark: SparkSession, folder: Path, grouping: str, **changes: Any) -> Ran:
    return Ran(
        spark,
        folder,
        grouping,
        operator={"type": "word_count", "text": "text"},
        window={"type": "none"},
        lateness=None,
        grouping={"type": grouping},
        dead_letters={"type": "files", "path": str(folder / "bad"), "max_share": 0.1},
        **changes,
    )


@pytest.mark.spark
@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_the_job_stops(spark: SparkSession, tmp_path: Path, grouping: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("\n".join([LINE] * 850 + ["-"] * 150))
    with pytest.raises(
        ExternalError, match=r"15\.0% of the last 1,000 records .* not_decoded: 150"
    ):
        run(spark, tmp_path, grouping)
    files = (tmp_path / "bad").glob("batch_id=0/*.json")
    assert sum(len(file.read_text().splitlines()) for file in files) == 150
