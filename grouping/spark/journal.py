"""The journal: what makes routing a pure function of a micro-batch, kept beside the checkpoint.

There is one folder a batch. When the rows of a source's task have ended, the task writes its
grouping's state there, the number of records it routed and a checksum of their routes; a
partition's task writes its report. A file is written once and whole: the first attempt to finish
writes it, later attempts leave it alone. A task of batch b reads the newest state of its source
*before* b, and the reports of the newest batch before b, so a retried, speculated or replayed task
starts from exactly what the first attempt started from.

Files are `grouping.snapshot` bytes: plain arrays with a checksum. A file that cannot be read stops
the job; it never silently changes the routing.

The journal lives on any filesystem that pyarrow opens by URI. On a local disk "write once" is a
hard link, which the kernel refuses if the name is taken. Elsewhere the name is looked up first, and
the file appears whole: by an object store's atomic put or, on HDFS, by a rename. Two attempts that
finish at the same moment may both write; both states are then equal, and of two reports either is
true.
"""

import errno
import os
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyarrow import fs

from unskew.grouping.base import Int32s, UInt64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.private_files import make_folder_within

KEPT_BATCHES = 20
# About how much the reader of rejected records has in memory at once.
PIECE_BYTES = 16 << 20
_WRITTEN = "dead-letters.published"
# Filesystems by pyarrow's names where a file appears only when it is complete.
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})
# Errors of filesystems without hard links: a mounted share, or a bucket as a folder.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EMLINK})
_BATCH = re.compile(r"\d{12}")
_STATE = re.compile(r"source-(\d+)\.state")
_ROUTING = re.compile(r"source-(\d+)\.routing")
_REPORT = re.compile(r"partition-(\d+)\.report")
# Journals of the version before end the name in `.bad`.
_REJECTED = re.compile(r"partition-\d+\.(?:rejected|bad)|totals\.rejected")
_WRITTEN_FILES = "written.files"
_UNTAKEN = "totals.rejected"


@dataclass(frozen=True)
class Routes:
    """A source's routes of one batch as the journal keeps them: their number and checksum."""

    records: int = 0
    checksum: int = 0

    def plus(self, routes: Int32s) -> "Routes":
        """Add the routes that follow; how they are cut into arrays changes nothing."""
        return Routes(self.records + routes.size, zlib.crc32(routes.data, self.checksum))


@dataclass(frozen=True)
class RoutingStats:
    """What a source measured while it routed one batch: for display, routing does not use it."""

    seconds: float
    hot_keys: UInt64s = field(default_factory=lambda: np.empty(0, np.uint64))
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Journal:
    """A journal by the URI or path of its folder; small, and sent to every task as it is."""

    location: str
    _opened: list[tuple[fs.FileSystem, str]] = field(
        default_factory=list, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[type["Journal"], tuple[str]]:
        return Journal, (self.location,)

    def state_before(self, batch: int, source: int) -> Snapshot | None:
        """Read the newest state that `source` left before `batch`."""
        for number in self._before(batch):
            state = self._read(number, f"source-{source:05d}.state")
            if state is not None:
                return state
        return None

    def reports_before(self, batch: int) -> dict[int, Snapshot]:
        """Read the reports of the newest batch before `batch` that has any."""
        for number in self._before(batch):
            reports = self.reports(number)
            if reports:
                return reports
        return {}

    def newest_sources(self, batch: int) -> int:
        """Count the sources that routed the newest batch before `batch`; 0 if there is none."""
        for number in self._before(batch):
            count = sum(1 for name in self._names(f"{number:012d}") if _STATE.fullmatch(name))
            if count:
                return count
        return 0

    def _before(self, batch: int) -> Iterator[int]:
        """The batches before `batch`, newest first.

        Only the batches that are always kept: an older one may be purged between two attempts,
        and then the second would route in another way than the first.
        """
        for number in reversed(self.batches()):
            if batch - KEPT_BATCHES <= number < batch:
                yield number

    def reports(self, batch: int) -> dict[int, Snapshot]:
        """Read the reports of one batch, by partition."""
        return self._read_all(batch, _REPORT)

    def states(self, batch: int) -> dict[int, Snapshot]:
        """Read the states that the sources left in one batch, by source."""
        return self._read_all(batch, _STATE)

    def write_state(self, batch: int, source: int, state: Snapshot) -> bool:
        """Write a source's state; False if an earlier attempt has."""
        return self._write(batch, f"source-{source:05d}.state", state.to_bytes())

    def write_report(self, batch: int, partition: int, report: Snapshot) -> bool:
        """Write a partition's report; False if an earlier attempt has."""
        return self._write(batch, f"partition-{partition:05d}.report", report.to_bytes())

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
        routes = routes or Routes()
        arrays: dict[str, Any] = {
            "routes": np.array([routes.records, routes.checksum], np.int64),
            "seconds": np.array([] if stats is None else [stats.seconds], np.float64),
        }
        options: dict[str, Any] = {}
        if stats is not None:
            arrays["hot_keys"] = stats.hot_keys
            options["signals"] = dict(stats.signals)
        routing = Snapshot("routing", 1, 1, 0, arrays, options)
        return self._write(batch, f"source-{source:05d}.routing", routing.to_bytes())

    def read_routing_stats(self, batch: int) -> dict[int, RoutingStats]:
        """Read what sources measured while they routed one batch, by source."""
        return {
            source: RoutingStats(
                float(routing.arrays["seconds"][0]),
                # The version before wrote the time alone.
                routing.arrays.get("hot_keys", np.empty(0, np.uint64)),
                cast("Mapping[str, float]", routing.options.get("signals", {})),
            )
            for source, routing in self._read_all(batch, _ROUTING).items()
            if routing.arrays["seconds"].size
        }

    def write_written_files(self, batch: int, written: Snapshot) -> bool:
        """Write which files a batch added to a table; for display."""
        return self._write(batch, _WRITTEN_FILES, written.to_bytes())

    def read_written_files(self, batch: int) -> Snapshot | None:
        """Read it."""
        return self._read(batch, _WRITTEN_FILES)

    def routes(self, batch: int) -> dict[int, Routes]:
        """Read what each source routed in one batch."""
        return {
            source: Routes(*(int(number) for number in routing.arrays["routes"]))
            for source, routing in self._read_all(batch, _ROUTING).items()
        }

    def write_rejected(self, batch: int, partition: int, table: pa.Table) -> bool:
        """Keep the records that a partition rejected until they are written as dead letters."""
        return self._write_rejected(batch, f"partition-{partition:05d}.rejected", table)

    def write_untaken(self, batch: int, table: pa.Table) -> bool:
        """Keep the totals that sinks could not take, likewise."""
        return self._write_rejected(batch, _UNTAKEN, table)

    def count_untaken(self, batch: int) -> int:
        """Count the totals of one batch that are kept so."""
        if _UNTAKEN not in self._names(f"{batch:012d}"):
            return 0
        system, root = self._open()
        with system.open_input_file(f"{root}/{batch:012d}/{_UNTAKEN}") as file:
            return int(pa.ipc.open_file(file).read_all().num_rows)

    def _write_rejected(self, batch: int, name: str, table: pa.Table) -> bool:
        sink = pa.BufferOutputStream()
        rows = max(1, table.num_rows * PIECE_BYTES // max(1, table.nbytes))
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
        data = sink.getvalue().to_pybytes()
        return self._write(batch, name, data)

    def rejected(self, batch: int) -> Iterator[pa.Table]:
        """Read the rejected records of one batch that are kept, in pieces of each partition."""
        system, root = self._open()
        for name in self._rejected_files(batch):
            with system.open_input_file(f"{root}/{batch:012d}/{name}") as file:
                pieces = pa.ipc.open_file(file)
                for number in range(pieces.num_record_batches):
                    yield pa.Table.from_batches([pieces.get_batch(number)])

    def drop_rejected(self, batch: int) -> None:
        """Remove the rejected records of one batch: they are written as dead letters."""
        system, root = self._open()
        for name in self._rejected_files(batch):
            system.delete_file(f"{root}/{batch:012d}/{name}")

    def _rejected_files(self, batch: int) -> list[str]:
        return sorted(name for name in self._names(f"{batch:012d}") if _REJECTED.fullmatch(name))

    def dead_letters_written(self, batch: int) -> bool:
        """Are the rejected records of a batch written as dead letters?"""
        return _WRITTEN in self._names(f"{batch:012d}")

    def mark_dead_letters_written(self, batch: int) -> None:
        """Mark that the rejected records of a batch are written as dead letters."""
        self._write(batch, _WRITTEN, b"")

    def unreadable_files(self) -> list[str]:
        """List the states and reports that the next batch needs and cannot read."""
        unreadable: list[str] = []
        states: set[str] = set()
        reported = False
        for number in self._before(max(self.batches(), default=-1) + 1):
            names = sorted(self._names(f"{number:012d}"))
            needed = [name for name in names if _STATE.fullmatch(name) and name not in states]
            states.update(needed)
            if not reported:
                reports = [name for name in names if _REPORT.fullmatch(name)]
                needed += reports
                reported = bool(reports)
            unreadable += [
                f"{number:012d}/{name}" for name in needed if not self._is_readable(number, name)
            ]
        return unreadable

    def unreadable_message(self, name: str, reason: str = "cannot be read") -> str:
        """Say what to do about a file that cannot be read, by its name within the journal."""
        return (
            f"journal: {self._open()[1]}/{name}: {reason}; routing cannot go on as it began."
            " Restore the file from a copy, or remove the journal's folder: totals stay exact, and"
            " the groupings begin anew"
        )

    def batches(self) -> list[int]:
        """List the batches of the journal, oldest first."""
        return sorted(int(name) for name in self._names("") if _BATCH.fullmatch(name))

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
        for number in self.batches():
            if number >= batch:
                system.delete_dir(f"{root}/{number:012d}")

    def drop_states(self) -> None:
        """Remove every routing state, so that the sources begin anew."""
        system, root = self._open()
        for number in self.batches():
            for name in self._names(f"{number:012d}"):
                if _STATE.fullmatch(name):
                    system.delete_file(f"{root}/{number:012d}/{name}")

    def size_bytes(self) -> int:
        """Sum the sizes of all files of the journal."""
        system, root = self._open()
        selector = fs.FileSelector(root, allow_not_found=True, recursive=True)
        return sum(info.size or 0 for info in system.get_file_info(selector))

    def _open(self) -> tuple[fs.FileSystem, str]:
        # Once in a process: opening a remote filesystem takes a connection.
        if not self._opened:
            self._opened.append(open_location(self.location))
        return self._opened[0]

    def _names(self, folder: str) -> Iterable[str]:
        system, root = self._open()
        path = f"{root}/{folder}" if folder else root
        return [
            info.base_name
            for info in system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        ]

    def _read_all(self, batch: int, pattern: re.Pattern[str]) -> dict[int, Snapshot]:
        snapshots: dict[int, Snapshot] = {}
        for name in sorted(self._names(f"{batch:012d}")):
            match = pattern.fullmatch(name)
            snapshot = self._read(batch, name) if match else None
            if match and snapshot is not None:
                snapshots[int(match.group(1))] = snapshot
        return snapshots

    def _is_readable(self, batch: int, name: str) -> bool:
        try:
            return self._read(batch, name) is not None
        except (SnapshotError, OSError):
            return False

    def _read(self, batch: int, name: str) -> Snapshot | None:
        system, root = self._open()
        path = f"{root}/{batch:012d}/{name}"
        try:
            with system.open_input_stream(path) as stream:
                data = stream.readall()
        except FileNotFoundError:
            return None
        try:
            return Snapshot.from_bytes(data)
        except SnapshotError as error:
            message = self.unreadable_message(f"{batch:012d}/{name}", str(error))
            raise SnapshotError(message) from error

    def _write(self, batch: int, name: str, data: bytes) -> bool:
        system, root = self._open()
        folder = f"{root}/{batch:012d}"
        path = f"{folder}/{name}"
        if isinstance(system, fs.LocalFileSystem):
            return _write_local(Path(folder), name, data)
        if system.get_file_info(path).type != fs.FileType.NotFound:
            return False
        system.create_dir(folder)
        write_whole(system, path, data)
        return True


def write_whole(system: fs.FileSystem, path: str, data: bytes) -> None:
    """Write a file that has its name only once it is complete, and replaces one of that name."""
    if system.type_name in _OBJECT_STORES:
        with system.open_output_stream(path) as stream:
            stream.write(data)
        return
    # A writer that is killed leaves the temporary name; it is purged with the batch's folder.
    folder, _, name = path.rpartition("/")
    part = f"{folder}/.{name}.{uuid.uuid4().hex}"
    try:
        with system.open_output_stream(part) as stream:
            stream.write(data)
        system.move(part, path)
    except BaseException:
        with suppress(OSError):
            system.delete_file(part)
        raise


def _write_local(folder: Path, name: str, data: bytes) -> bool:
    make_folder_within(folder)
    if (folder / name).exists():
        return False
    # On a full disk the link is never made, so no half-written file ever has the name.
    part = folder / f".{name}.{uuid.uuid4().hex}"
    try:
        with part.open("xb") as file:
            file.write(data)
        _link(part, folder / name)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def _link(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        part.rename(path)
