import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from tests.support.checkpoints import newest_state
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.rejected_file import COLUMNS
from unskew.grouping.spark.report import PartitionReport


def state(number: int) -> Snapshot:
    return Snapshot("key", 1, 4, 0, {"active": np.full(4, number, np.uint8)})


def report(records: int) -> Snapshot:
    return PartitionReport(records=records, busy_seconds=0.5).to_snapshot(4)


def rejected(*reasons: str) -> pa.Table:
    columns = {name: pa.nulls(len(reasons), pa.string()) for name in COLUMNS}
    return pa.table({**columns, "reason": list(reasons)})


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "journal"))


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_what_is_written_is_read_back(tmp_path: Path, prefix: str) -> None:
    journal = Journal(f"{prefix}{tmp_path}/deep/journal")
    assert journal.write_state(3, 1, state(1))
    state_read = newest_state(journal, 4, 1)
    assert state_read is not None
    assert state_read.checksum() == state(1).checksum()
    assert journal.batches() == [3]


def test_an_empty_journal_has_nothing(journal: Journal) -> None:
    assert journal.batches() == []
    assert newest_state(journal, 5, 0) is None
    assert journal.reports_before(5) == {}
    assert journal.count_newest_sources(5) == 0
    assert journal.sum_size_bytes() == 0
    journal.purge(before=10)


def test_the_first_attempt_wins(journal: Journal, tmp_path: Path) -> None:
    assert journal.write_state(0, 0, state(1))
    assert not journal.write_state(0, 0, state(2))
    state_read = newest_state(journal, 1, 0)
    assert state_read is not None
    assert state_read.checksum() == state(1).checksum()
    assert [path.name for path in (tmp_path / "journal" / "000000000000").iterdir()] == [
        "source-00000.state"
    ]


def test_what_the_next_batch_needs_and_cannot_read_is_listed(journal: Journal) -> None:
    folder = Path(journal.location)
    for batch in (0, 1):
        journal.write_state(batch, 0, state(batch))
        journal.write_report(batch, 0, report(batch))
    journal.write_state(0, 1, state(0))
    assert journal.list_unreadable_files() == []
    files = ["000000000000/source-00000.state", "000000000000/partition-00000.report"]
    needed = [
        "000000000001/source-00000.state",
        "000000000001/partition-00000.report",
        "000000000000/source-00001.state",
    ]
    for name in [*files, *needed]:
        (folder / name).write_bytes(b"garbage")
    assert journal.list_unreadable_files() == needed


def test_a_task_never_sees_its_own_batch(journal: Journal) -> None:
    journal.write_state(2, 0, state(2))
    journal.write_state(5, 0, state(5))
    before = [newest_state(journal, batch, 0) for batch in (2, 3, 5, 6)]
    assert [state_read and int(state_read.arrays["active"][0]) for state_read in before] == [
        None,
        2,
        2,
        5,
    ]


def test_a_source_that_missed_a_batch_goes_on_from_its_own_last_state(journal: Journal) -> None:
    journal.write_state(1, 0, state(1))
    journal.write_state(1, 1, state(11))
    journal.write_state(2, 0, state(2))
    state_read = newest_state(journal, 3, 1)
    assert state_read is not None
    assert state_read.arrays["active"][0] == 11
    assert journal.count_newest_sources(3) == 1
    assert journal.count_newest_sources(2) == 2


def test_reports_are_those_of_the_newest_batch_that_has_some(journal: Journal) -> None:
    journal.write_report(1, 3, report(13))
    journal.write_report(2, 0, report(20))
    journal.write_state(3, 0, state(3))
    assert list(journal.reports_before(2)) == [3]
    assert list(journal.reports_before(9)) == [0]


def test_purging_removes_whole_batches_and_keeps_the_rest(journal: Journal) -> None:
    for batch in range(5):
        journal.write_state(batch, 0, state(batch))
    journal.purge(before=3)
    assert journal.batches() == [3, 4]
    assert journal.sum_size_bytes() > 0


class _Busy:
    """A file system in whose folders a task still writes: the first removals fail."""

    def __init__(self, system: fs.FileSystem, failures: int) -> None:
        self._system, self._failures = system, failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def delete_dir(self, path: str) -> None:
        self._failures -= 1
        if self._failures >= 0:
            raise FileNotFoundError(path)
        self._system.delete_dir(path)


def test_a_batch_is_dropped_while_a_task_of_it_ends(journal: Journal) -> None:
    journal.write(3, "a", b"")
    system, root = open_location(journal.location)
    busy = _Busy(system, failures=2)

    Journal(journal.location, [(busy, root)]).drop_from(3)  # type: ignore[list-item]

    assert journal.batches() == []


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_file_stops_with_what_to_do(
    journal: Journal, tmp_path: Path, damage: str
) -> None:
    journal.write_state(0, 0, state(1))
    path = tmp_path / "journal" / "000000000000" / "source-00000.state"
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[:-3]
    else:
        data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(SnapshotError) as error:
        newest_state(journal, 1, 0)
    assert str(path) in str(error.value)
    assert "remove the journal's folder" in str(error.value)


def test_half_written_files_are_not_seen(journal: Journal, tmp_path: Path) -> None:
    journal.write_report(0, 1, report(1))
    folder = tmp_path / "journal" / "000000000000"
    (folder / ".partition-00002.report.abc").write_bytes(b"half")
    assert list(journal.reports(0)) == [1]


def test_rejected_records_are_kept_until_they_are_written(journal: Journal) -> None:
    rows = rejected("not_utf8", "null_key")
    assert journal.write_rejected(4, 2, rows)
    assert not journal.write_rejected(4, 2, rows.slice(1))
    assert [table.to_pylist() for table in journal.rejected(4)] == [rows.to_pylist()]
    assert not journal.are_dead_letters_written(4)
    journal.mark_dead_letters_written(4)
    assert journal.are_dead_letters_written(4)


def test_it_is_sent_to_tasks_as_its_location_alone(journal: Journal) -> None:
    journal.write_state(0, 0, state(1))
    copy = pickle.loads(pickle.dumps(journal))  # noqa: S301 - our own bytes, as Spark sends them
    assert copy == journal
    assert copy.batches() == [0]
