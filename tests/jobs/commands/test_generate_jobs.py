"""The shipped jobs, as their files are, over generated streams: exactly the oracle's totals."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from tests.support.generated_streams import generated, read_oracle
from tests.support.running.in_process import Ran
from unskew.jobs.generator.options import STREAMS

pytestmark = [pytest.mark.spark]


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # collect() gives timestamps in the process's own zone.
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def shipped(root: Path, job: str) -> dict[str, Any]:
    """What the job's file says of how records are read and counted."""
    text = yaml.safe_load((root / "config" / "jobs" / f"{job}.yaml").read_text())
    text["operator"].pop("top", None)
    return {name: text[name] for name in ("decode", "operator", "event_time")}


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["lines", "trades", "posts"])
def test_a_shipped_job_gives_what_the_oracle_says(
    stream: str, root: Path, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    generated(
        tmp_path / "in" / "1.parquet",
        *(stream, "--records=8000", "--rate=200", "--keys=20", "--rejected=0.02"),
        *("--late=0.1", f"--oracle={tmp_path / 'o.json'}", "--window=20s", "--slide=10s"),
        *("--flare-every=40s", "--flare-for=10s"),
    )
    ran = Ran(
        spark,
        tmp_path,
        stream,
        source={"type": "files", "path": str(tmp_path / "in"), "format": "parquet"},
        grouping={"type": "level"},
        window={"type": "sliding", "duration": "20 s", "slide": "10 s"},
        lateness="1 minute",
        **shipped(root, STREAMS[stream]),
    )

    head, totals = read_oracle(tmp_path / "o.json")
    if stream == "posts":
        # So many users are estimated by the job, and by the oracle.
        assert max(each["users"] for each in totals.values()) > 800
    assert dict(ran.rejected) == head["rejected"]
    rows = {
        (start.isoformat() + "+00:00", end.isoformat() + "+00:00", key): each
        for (start, end, key), each in ran.last.items()
    }
    expected = {
        (start.isoformat(), end.isoformat(), key): each
        for (start, end, key), each in totals.items()
    }
    assert {index: _plain(each) for index, each in rows.items()} == expected


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Times as the sinks in JSON write them."""
    return {
        name: value.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        if isinstance(value, datetime)
        else value
        for name, value in row.items()
    }
