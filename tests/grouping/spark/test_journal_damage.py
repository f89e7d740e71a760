"""Files of the journal that are damaged, or whole and wrong: each is an error with its name."""

import dataclasses
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support.checkpoints import REPORTS_OF_VERSION_3, newest_state
from unskew.grouping.errors import SnapshotError
from unskew.grouping.registry import create
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.rejected_file import COLUMNS
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.checkpoint.files import JOURNAL_FOLDER

FOLDER = f"{0:012d}"
REPORT = PartitionReport(records=3, busy_seconds=0.5).to_snapshot(4)
Use = Callable[[Journal], object]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path))


def rejected(rows: int) -> pa.Table:
    columns = {name: pa.nulls(rows, pa.string()) for name in COLUMNS}
    values = [bytes([row]) * 40 for row in range(rows)]
    return pa.table({**columns, "reason": ["not_utf8"] * rows, "value": values})


def with_arrays(snapshot: Snapshot, **arrays: object) -> Snapshot:
    changed = {name: np.asarray(values) for name, values in arrays.items()}
    return dataclasses.replace(snapshot, arrays={**snapshot.arrays, **changed})


def without(snapshot: Snapshot, name: str) -> Snapshot:
    arrays = {key: values for key, values in snapshot.arrays.items() if key != name}
    return dataclasses.replace(snapshot, arrays=arrays)


def test_every_flipped_bit_of_rejected_records_is_noticed(journal: Journal) -> None:
    journal.write_rejected(0, 0, rejected(5))
    path = Path(journal.location, FOLDER, "partition-00000.rejected")
    data = path.read_bytes()
    for bit in random.Random(1).sample(range(8 * len(data)), 400):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(SnapshotError, match=r"partition-00000\.rejected"):
            list(journal.rejected(0))
    assert journal.list_unreadable_files(0) == [f"{FOLDER}/{path.name}"]


@pytest.mark.parametrize("size", [0, 5, 11, 12, 40, 300, -17, -1])
def test_cut_rejected_records_name_their_file(journal: Journal, size: int) -> None:
    journal.write_rejected(0, 0, rejected(5))
    journal.write_rejected(0, 1, rejected(5))
    path = Path(journal.location, FOLDER, "partition-00001.rejected")
    path.write_bytes(path.read_bytes()[:size])
    read = []
    with pytest.raises(SnapshotError) as failed:
        read += journal.rejected(0)
    assert str(failed.value).startswith(f"journal: {path}: ")
    assert "dead letters cannot be written" in str(failed.value)
    assert read == [], "no record is read before all files are checked"


def test_records_that_the_version_before_kept_are_read_and_checked(tmp_path: Path) -> None:
    older = (REPORTS_OF_VERSION_3 / JOURNAL_FOLDER).rglob("*.bad")
    data = next(older).read_bytes()
    path = tmp_path / FOLDER / "partition-00000.bad"
    path.parent.mkdir()
    path.write_bytes(data)
    (records,) = Journal(str(tmp_path)).rejected(0)
    assert records["reason"].to_pylist() == ["not_decoded"]
    path.write_bytes(data[:-20])
    with pytest.raises(SnapshotError, match=r"partition-00000\.bad: damaged or cut short"):
        list(Journal(str(tmp_path)).rejected(0))


def read_reports(journal: Journal) -> object:
    return journal.reports(0)


def read_routing(journal: Journal) -> object:
    return journal.read_routing_stats(0)


def restore(journal: Journal) -> object:
    return journal.restore_before(1, 0, create("level", partitions=4))


@pytest.mark.parametrize(
    ("name", "content", "use"),
    [
        ("partition-00000.report", without(REPORT, "records"), read_reports),
        ("partition-00000.report", with_arrays(REPORT, records=np.empty(0, int)), read_reports),
        ("partition-00000.report", with_arrays(REPORT, busy_seconds=[np.nan]), read_reports),
        ("partition-00000.report", with_arrays(REPORT, heavy_records=[7]), read_reports),
        (
            "partition-00000.report",
            with_arrays(REPORT, **{"shown.home_partitions": [9], "shown.home_records": [1]}),
            read_reports,
        ),
        (
            "partition-00000.report",
            with_arrays(REPORT, shown=np.frombuffer(b"{", np.uint8)),
            read_reports,
        ),
        (
            "partition-00000.report",
            dataclasses.replace(REPORT, partitions=150_000_000_000),
            read_reports,
        ),
        ("partition-00099.report", REPORT, read_reports),
        ("partition-00000.report", dataclasses.replace(REPORT, version=3), read_reports),
        ("source-00000.routing", Snapshot("routing", 1, 1, 0, {}), read_routing),
        (
            "source-00000.routing",
            Snapshot("routing", 1, 1, 0, {"routes": np.zeros(3, int), "seconds": np.zeros(1)}),
            read_routing,
        ),
        ("source-00000.state", Snapshot("level", 1, 4, 0, {}), restore),
        (
            "partition-00000.rejected",
            Snapshot("rejected", 1, 1, 0, {"piece": np.frombuffer(b"\xff" * 64, np.uint8)}),
            lambda journal: list(journal.rejected(0)),
        ),
        ("partition-00000.rejected", REPORT, lambda journal: list(journal.rejected(0))),
    ],
)
def test_wrong_content_with_a_right_checksum_is_one_error(
    journal: Journal, name: str, content: Snapshot, use: Use
) -> None:
    path = Path(journal.location, FOLDER, name)
    path.parent.mkdir()
    path.write_bytes(content.to_bytes())
    with pytest.raises(SnapshotError) as failed:
        use(journal)
    assert str(failed.value).startswith(f"journal: {path}: ")
    assert "\n" not in str(failed.value)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["source-00000.state", "partition-00000.rejected"])
def test_a_pipe_in_the_place_of_a_file_is_refused(journal: Journal, name: str) -> None:
    path = Path(journal.location, FOLDER, name)
    path.parent.mkdir()
    os.mkfifo(path)
    assert journal.list_unreadable_files() == [f"{FOLDER}/{name}"]
    with pytest.raises(SnapshotError, match="is not a regular file"):
        newest_state(journal, 1, 0) or list(journal.rejected(0))


def test_what_is_dropped_anyway_is_not_judged(journal: Journal) -> None:
    for batch in (0, 1):
        journal.write_state(batch, 0, create("level", partitions=4).snapshot())
        journal.write_rejected(batch, 0, rejected(1))
    for path in Path(journal.location).rglob("*.*"):
        path.write_bytes(b"damaged")
    assert journal.list_unreadable_files(-1) == []
    assert journal.list_unreadable_files(0) == [
        f"{FOLDER}/source-00000.state",
        f"{FOLDER}/partition-00000.rejected",
    ]
    assert journal.list_unreadable_files(0, states=False) == [f"{FOLDER}/partition-00000.rejected"]
    journal.mark_dead_letters_written(0)
    assert journal.list_unreadable_files(0, states=False) == []


def test_a_file_is_on_the_disk_before_it_has_its_name(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("fsync", "link"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *given, name=name, real=real: (calls.append(name), real(*given))[1]
        )
    journal.write_report(0, 0, REPORT)
    assert calls == ["fsync", "link"]
    calls.clear()
    journal.write_rejected(0, 0, rejected(1))
    assert calls == ["fsync", "link", "fsync"]
