"""The journal: what makes routing a pure function of a micro-batch, kept beside the checkpoint.

There is one folder a batch. When the rows of a source's task have ended, the task writes its
grouping's state there, the number of records it routed and a checksum of their routes; a
partition's task writes its report. A file is written once and whole: the first attempt to finish
writes it, later attempts leave it alone. A task of batch b reads the newest state of its source
*before* b, and the reports of the newest batch before b, so a retried, speculated or replayed task
starts from exactly what the first attempt started from.

Files are `grouping.snapshot` bytes: plain arrays with a checksum, fsynced before they get their
name, on any filesystem that pyarrow opens (`whole_files`). A file that cannot be read, or whose
content is inconsistent, stops the job with an error that names it; it never silently changes the
routing.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import fs

from unskew.grouping.base import PARTITIONS_MAX, Grouping
from unskew.grouping.errors import SnapshotError, TakenOverError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.rejected_file import check_rejected, encode_rejected, read_rejected
from unskew.grouping.spark.report import MeasuredLoad, PartitionReport, check_partition
from unskew.grouping.spark.routing_file import (
    Routes,
    RoutingStats,
    check_routing,
    make_snapshot,
    read_routes,
    read_stats,
)
from unskew.grouping.spark.whole_files import (
    Synced,
    delete_folder,
    open_file,
    read_whole,
    write_once,
    write_whole,
)

KEPT_BATCHES = 20
_OWNER = "owner"
_WRITTEN = "dead-letters.published"
_BATCH = re.compile(r"\d{12}")
_STATE = re.compile(r"source-(\d+)\.state")
_OF_STATES = re.compile(r"source-\d+\.state|sources\.agreed")
_ROUTING = re.compile(r"source-(\d+)\.routing")
_REPORT = re.compile(r"partition-(\d+)\.report")
# Journals of the version before end the name in `.bad`.
_REJECTED = re.compile(r"partition-\d+\.(?:rejected|bad)|totals\.rejected")
_WRITTEN_FILES = "written.files"
_REJECTED_TOTALS = "totals.rejected"


@dataclass(frozen=True)
class Journal:
    """A journal by the URI or path of its folder; small, and sent to every task as it is."""

    location: str
    _opened: list[tuple[fs.FileSystem, str]] = field(
        default_factory=list, repr=False, compare=False
    )
    owner: str = ""
    """The start that writes to it; without one, writes are not checked."""

    def __reduce__(self) -> tuple[type["Journal"], tuple[object, ...]]:
        return Journal, (self.location, [], self.owner)

    def take_over(self) -> None:
        """Let no other start write from now on, such as a frozen one that wakes up."""
        system, root = self._open()
        write_whole(system, f"{root}/{_OWNER}", self.owner.encode())

    def check_owner(self) -> None:
        """Raise a TakenOverError if another start has taken it over."""
        system, root = self._open()
        known = read_whole(system, f"{root}/{_OWNER}") if self.owner else None
        if known not in {None, self.owner.encode()}:
            raise TakenOverError(
                f"checkpoint: {root}: another start of the job took it over; this one stops"
            )

    def read_states_before(self, batch: int, source: int) -> Iterator[tuple[int, Snapshot]]:
        """Read the states that `source` left before `batch`, each with its batch, newest first."""
        for number in self.batches_before(batch):
            if state := self.read(number, name_state(source)):
                yield number, state

    def restore_before(self, batch: int, source: int, new: Grouping, others: bool = False) -> None:
        """Let a new grouping go on from the newest of them, if it is for as many partitions.

        With `others`, states of other groupings are passed over.
        """
        for number, state in self.read_states_before(batch, source):
            if not others or state.kind == new.snapshot().kind:
                if state.partitions == new.setting.partitions:
                    with self.naming(number, name_state(source)):
                        new.restore(state)
                return

    def reports_before(self, batch: int) -> dict[int, Snapshot]:
        """Read the reports of the newest batch before `batch` that has any, to route by them."""
        for number in self.batches_before(batch):
            reports = self._read_all(number, _REPORT, MeasuredLoad.from_snapshot)
            if reports:
                return reports
        return {}

    def count_newest_sources(self, batch: int) -> int:
        """Count the sources that routed the newest batch before `batch`; 0 if there is none."""
        for number in self.batches_before(batch):
            count = sum(1 for name in self._list(f"{number:012d}") if _STATE.fullmatch(name))
            if count:
                return count
        return 0

    def batches_before(self, batch: int) -> Iterator[int]:
        """List the batches before `batch`, newest first.

        Only the batches that are always kept: an older one may be purged between two attempts,
        and then the second would route in another way than the first.
        """
        for number in reversed(self.batches()):
            if batch - KEPT_BATCHES <= number < batch:
                yield number

    def reports(self, batch: int) -> dict[int, Snapshot]:
        """Read the reports of one batch, by partition."""
        return self._read_all(batch, _REPORT, PartitionReport.from_snapshot)

    def states(self, batch: int) -> dict[int, Snapshot]:
        """Read the states that the sources left in one batch, by source."""
        return self._read_all(batch, _STATE)

    def write_state(self, batch: int, source: int, state: Snapshot) -> bool:
        """Write a source's state; False if an earlier attempt has."""
        return self.write(batch, name_state(source), state.to_bytes())

    def write_report(self, batch: int, partition: int, report: Snapshot) -> bool:
        """Write a partition's report; False if an earlier attempt has."""
        return self.write(batch, f"partition-{partition:05d}.report", report.to_bytes())

    def write_routing(
        self,
        batch: int,
        source: int,
        stats: RoutingStats | None = None,
        routes: Routes | None = None,
    ) -> bool:
        """Write what a source routed, and its stats if it was measured.

        The time is not part of the state, since no two attempts agree on it.
        """
        routing = make_snapshot(routes or Routes(), stats)
        name = f"source-{source:05d}.routing"
        # Not synced: it is only shown, and each fsync costs a task some milliseconds.
        return self.write(batch, name, routing.to_bytes(), Synced.NOTHING)

    def read_routing_stats(self, batch: int) -> dict[int, RoutingStats]:
        """Read what sources measured while they routed one batch, by source."""
        return {
            source: read_stats(routing)
            for source, routing in self._read_all(batch, _ROUTING, check_routing).items()
            if routing.arrays["seconds"].size
        }

    def write_written_files(self, batch: int, written: Snapshot) -> bool:
        """Write which files a batch added to a table; for display."""
        return self.write(batch, _WRITTEN_FILES, written.to_bytes())

    def read_written_files(self, batch: int) -> Snapshot | None:
        """Read it."""
        return self.read(batch, _WRITTEN_FILES)

    def routes(self, batch: int) -> dict[int, Routes]:
        """Read what each source routed in one batch."""
        return {
            source: read_routes(routing)
            for source, routing in self._read_all(batch, _ROUTING, check_routing).items()
        }

    def write_rejected(self, batch: int, partition: int, table: pa.Table) -> bool:
        """Keep the records that a partition rejected until they are written as dead letters."""
        return self._write_rejected(batch, f"partition-{partition:05d}.rejected", table)

    def write_rejected_totals(self, batch: int, table: pa.Table) -> bool:
        """Keep the totals that sinks rejected, likewise."""
        return self._write_rejected(batch, _REJECTED_TOTALS, table)

    def rejected_totals(self, batch: int) -> Iterator[pa.Table]:
        """Read the totals of one batch that are kept so."""
        if self.has(batch, _REJECTED_TOTALS):
            yield from self._read_pieces(batch, _REJECTED_TOTALS)

    def _write_rejected(self, batch: int, name: str, table: pa.Table) -> bool:
        # With a synced name: once their batch is committed, nothing else has these records.
        return self.write(batch, name, encode_rejected(table), Synced.NAME)

    def rejected(self, batch: int) -> Iterator[pa.Table]:
        """Read the rejected records of one batch that are kept, in pieces of checked files."""
        names = self._find_rejected(batch)
        for name in names:
            self._check_rejected(batch, name)
        for name in names:
            yield from self._read_pieces(batch, name)

    def _check_rejected(self, batch: int, name: str) -> None:
        system, root = self._open()
        with self.naming(batch, name), open_file(system, f"{root}/{batch:012d}/{name}") as file:
            check_rejected(file)

    def _read_pieces(self, batch: int, name: str) -> Iterator[pa.Table]:
        system, root = self._open()
        with self.naming(batch, name), open_file(system, f"{root}/{batch:012d}/{name}") as file:
            yield from read_rejected(file)

    def drop_rejected(self, batch: int) -> None:
        """Remove the rejected records of one batch: they are written as dead letters."""
        system, root = self._open()
        for name in self._find_rejected(batch):
            system.delete_file(f"{root}/{batch:012d}/{name}")

    def _find_rejected(self, batch: int) -> list[str]:
        return sorted(name for name in self._list(f"{batch:012d}") if _REJECTED.fullmatch(name))

    def are_dead_letters_written(self, batch: int) -> bool:
        """Are the rejected records of a batch written as dead letters?"""
        return self.has(batch, _WRITTEN)

    def mark_dead_letters_written(self, batch: int) -> None:
        """Mark that the rejected records of a batch are written as dead letters."""
        self.write(batch, _WRITTEN, b"", Synced.NOTHING)

    def list_unreadable_files(self, newest: int | None = None, *, states: bool = True) -> list[str]:
        """List what a start after batch `newest`, or after all, needs and cannot read.

        Without `states`, routing starts over.
        """
        last = max(self.batches(), default=-1)
        last = last if newest is None else min(last, newest)
        needed = [*self._list_for_routing(last, states), *self._list_for_dead_letters(last)]
        return [
            f"{number:012d}/{name}"
            for number, name in needed
            if not self._is_readable(number, name)
        ]

    def _list_for_routing(self, last: int, states: bool) -> Iterator[tuple[int, str]]:
        seen: set[str] = set()
        reported = False
        for number in self.batches_before(last + 1):
            names = sorted(self._list(f"{number:012d}"))
            if states:
                new = [name for name in names if _OF_STATES.fullmatch(name) and name not in seen]
                seen.update(new)
                yield from ((number, name) for name in new)
            reports = [name for name in names if _REPORT.fullmatch(name)]
            if not reported:
                yield from ((number, name) for name in reports)
            reported = reported or bool(reports)

    def _list_for_dead_letters(self, last: int) -> Iterator[tuple[int, str]]:
        for number in self.batches():
            if number <= last and not self.are_dead_letters_written(number):
                yield from ((number, name) for name in self._find_rejected(number))

    def describe_unreadable(self, name: str, reason: str = "cannot be read") -> str:
        """Say what to do about a file that cannot be read, by its name within the journal."""
        begin = f"journal: {self._open()[1]}/{name}: {reason}; "
        if _REJECTED.fullmatch(name.rpartition("/")[2]):
            return (
                f"{begin}its dead letters cannot be written. Restore the file from a copy, or"
                " remove it: totals stay exact, but the records rejected in that batch, which the"
                " source may still have, then have no dead letters"
            )
        return (
            f"{begin}routing cannot go on as it began. Restore the file from a copy, or remove the"
            " journal's folder: totals stay exact, and the groupings start over"
        )

    def has(self, batch: int, name: str) -> bool:
        """Is there such a file of one batch?"""
        return name in self._list(f"{batch:012d}")

    def batches(self) -> list[int]:
        """List the batches of the journal, oldest first."""
        return sorted(int(name) for name in self._list("") if _BATCH.fullmatch(name))

    def purge(self, before: int) -> None:
        """Remove the batches before `before`."""
        system, root = self._open()
        for number in self.batches():
            if number < before:
                with suppress(FileNotFoundError):  # a speculated task may purge at the same time
                    system.delete_dir(f"{root}/{number:012d}")

    def drop_from(self, batch: int) -> None:
        """Remove `batch` and all later ones: they were not committed and will run again."""
        system, root = self._open()
        for number in filter(lambda number: number >= batch, self.batches()):
            delete_folder(system, f"{root}/{number:012d}")

    def drop_states(self) -> None:
        """Remove every routing state, so that the sources start over."""
        system, root = self._open()
        for number in self.batches():
            for name in self._list(f"{number:012d}"):
                if _OF_STATES.fullmatch(name):
                    system.delete_file(f"{root}/{number:012d}/{name}")

    def sum_size_bytes(self) -> int:
        """Sum the sizes of all files of the journal."""
        system, root = self._open()
        selector = fs.FileSelector(root, allow_not_found=True, recursive=True)
        return sum(info.size or 0 for info in system.get_file_info(selector))

    def _open(self) -> tuple[fs.FileSystem, str]:
        # Once in a process: opening a remote filesystem takes a connection.
        if not self._opened:
            self._opened.append(open_location(self.location))
        return self._opened[0]

    def _list(self, folder: str) -> Iterable[str]:
        system, root = self._open()
        path = f"{root}/{folder}" if folder else root
        infos = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return [info.base_name for info in infos]

    def _read_all(
        self,
        batch: int,
        pattern: re.Pattern[str],
        check: Callable[[Snapshot], object] = lambda _: None,
    ) -> dict[int, Snapshot]:
        snapshots: dict[int, Snapshot] = {}
        for name in sorted(self._list(f"{batch:012d}")):
            match = pattern.fullmatch(name)
            snapshot = self.read(batch, name) if match else None
            if match and snapshot is not None:
                number = int(match.group(1))
                with self.naming(batch, name):
                    check(snapshot)
                    if pattern is _REPORT:
                        check_partition(number, snapshot, snapshots)
                snapshots[number] = snapshot
        return snapshots

    def _is_readable(self, batch: int, name: str) -> bool:
        try:
            if _REJECTED.fullmatch(name):
                self._check_rejected(batch, name)
                for _ in self._read_pieces(batch, name):
                    pass
            else:
                snapshot = self.read(batch, name)
                if snapshot is not None and _REPORT.fullmatch(name):
                    MeasuredLoad.from_snapshot(snapshot)
        except (SnapshotError, OSError):
            return False
        return True

    def read(self, batch: int, name: str) -> Snapshot | None:
        """Read a file of a batch; None if it is not there."""
        system, root = self._open()
        with self.naming(batch, name):
            data = read_whole(system, f"{root}/{batch:012d}/{name}")
            if data is None:
                return None
            snapshot = Snapshot.from_bytes(data)
            if not 0 < snapshot.partitions <= PARTITIONS_MAX:
                raise SnapshotError(f"snapshot: partitions: got {snapshot.partitions}")
            return snapshot

    @contextmanager
    def naming(self, batch: int, name: str) -> Iterator[None]:
        """Give errors about a file's content its name, and say what to do."""
        try:
            yield
        except (SnapshotError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            reason = str(error)
            if not isinstance(error, SnapshotError):
                reason = f"inconsistent content ({type(error).__name__}: {error})"
            raise SnapshotError(self.describe_unreadable(f"{batch:012d}/{name}", reason)) from error

    def write(self, batch: int, name: str, data: bytes, synced: Synced = Synced.CONTENT) -> bool:
        """Write a file of a batch; False if an earlier attempt has."""
        self.check_owner()
        system, root = self._open()
        return write_once(system, f"{root}/{batch:012d}/{name}", data, synced)


def name_state(source: int) -> str:
    return f"source-{source:05d}.state"
