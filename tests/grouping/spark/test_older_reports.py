"""What the version before wrote into a journal is read, and routed by, as it was meant."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.checkpoints import REPORTS_OF_VERSION_3
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import MeasuredLoad, PartitionReport, make_feedback
from unskew.grouping.spark.router import Router

JOURNAL = Journal(str(REPORTS_OF_VERSION_3 / "unskew"))
INSPECT = """
import sys
from unskew.jobs.__main__ import main
assert main(["inspect", *sys.argv[1:]]) == 0
heavy = {name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j", "numba"}
assert not heavy, heavy
"""


def rewritten(snapshot: Snapshot, **changes: Any) -> Snapshot:
    """The snapshot with arrays replaced by name, or removed by None."""
    arrays = {**snapshot.arrays, **changes}
    present = {name: array for name, array in arrays.items() if array is not None}
    return Snapshot(snapshot.grouping, snapshot.version, snapshot.partitions, 0, present)


def test_every_field_of_the_version_before_is_read() -> None:
    report = PartitionReport.from_snapshot(JOURNAL.reports(1)[1])
    assert (report.records, report.keys, report.busy_seconds) == (16, 5, 0.25)
    assert (report.rejected, report.executor) == ({"not_decoded": 1}, "executor-host/1")
    assert (report.state_bytes, report.latency_seconds) == (197, 24.0)
    assert report.heavy_records.sum() == report.home_records.sum() == 16
    assert report.latency_counts.sum() == report.window_records.sum() == 16
    assert report.sample_hashes.size == report.heavy_hashes.size == 5


def test_the_next_batch_is_routed_from_the_states_and_reports_of_the_version_before() -> None:
    feedback = make_feedback(JOURNAL.reports_before(2), 3)
    assert feedback is not None
    assert feedback.records.tolist() == [16, 16, 16]
    first, second, third = feedback.busy_seconds.tolist()
    assert first > second > third
    options = dict(JOURNAL.states(1)[0].options)
    grouping = Router("posg", 3, options=options, journal=JOURNAL).restore_grouping(2, 0)
    again = Router("posg", 3, options=options, journal=JOURNAL).restore_grouping(2, 0)
    keys = np.arange(100, dtype=np.uint64)
    assert grouping.route(keys).tolist() == again.route(keys).tolist()


def test_rejected_records_of_the_version_before_are_read() -> None:
    assert not JOURNAL.are_dead_letters_written(1)
    (table,) = JOURNAL.rejected(1)
    assert isinstance(table, pa.Table)
    assert table.select(["reason", "value"]).to_pylist() == [
        {"reason": "not_decoded", "value": b"not json"}
    ]


def test_inspect_reads_it_without_spark_and_numba() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INSPECT, "--json", str(REPORTS_OF_VERSION_3)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert (data["grouping"], data["records"], len(data["batches"])) == ("posg", 96, 2)
    assert data["batches"][1]["dead_letters"] == {"not_decoded": 1}
    assert data["partitions"][0]["last_batch"]["executor"] == "executor-host/1"


def test_shown_fields_that_are_unknown_or_missing_are_tolerated() -> None:
    report = PartitionReport(records=4, busy_seconds=0.5, keys=3, executor="host/1")
    snapshot = report.to_snapshot(2)
    shown = json.loads(snapshot.arrays["shown"].tobytes())
    del shown["keys"]
    shown["pauses"] = 7
    text = np.frombuffer(json.dumps(shown).encode(), np.uint8)
    changes = {"shown": text, "shown.pause_ends": np.zeros(3), "shown.window_ends": None}
    read = PartitionReport.from_snapshot(rewritten(snapshot, **changes))
    assert (read.records, read.keys, read.executor, read.window_ends.size) == (4, 0, "host/1", 0)
    without = PartitionReport.from_snapshot(rewritten(snapshot, shown=None))
    assert (without.records, without.executor) == (4, "")


@pytest.mark.parametrize("name", ["records", "busy_seconds", "heavy_hashes", "heavy_records"])
def test_what_routing_depends_on_is_read_strictly(name: str) -> None:
    snapshot = PartitionReport(records=4, busy_seconds=0.5).to_snapshot(2)
    for wrong in (None, np.zeros(1, np.int32)):
        with pytest.raises(SnapshotError, match=f"journal: report: {name}: missing, or not of"):
            MeasuredLoad.from_snapshot(rewritten(snapshot, **{name: wrong}))


@pytest.mark.parametrize("version", [2, 5])
def test_another_version_of_the_load_is_refused_in_one_line(version: int) -> None:
    arrays = PartitionReport(records=4, busy_seconds=0.5).to_snapshot(2).arrays
    with pytest.raises(SnapshotError, match=rf"report of version {version}, .* new checkpoint$"):
        make_feedback({0: Snapshot("report", version, 2, 0, arrays)}, 2)
