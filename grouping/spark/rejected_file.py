"""A task's rejected records as one file: a snapshot whose arrays are pieces in Arrow's format.

The pieces bound the reader's memory. Files of the version before are Arrow files without a
checksum: what Arrow can tell of their damage is checked.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import (
    DAMAGED,
    DIGEST_BYTES,
    HEAD_BYTES,
    Header,
    Snapshot,
    digest_of,
    header_end,
)

COLUMNS = ("reason", "key", "value", "topic", "partition", "offset", "timestamp")
PIECE_BYTES = 16 << 20
"""About how much of the records a reader has in memory at once."""
RECORDS_LEFT = "records.left"
"""The file that says of a batch: of some records it is kept only where they are in the source."""
_KIND = "rejected"
_VERSION = 1
_ARROW_FILE = b"ARROW1"
_READ_BYTES = 1 << 20


def encode_rejected(records: pa.Table) -> bytes:
    """Encode the file's content."""
    rows = max(1, records.num_rows * PIECE_BYTES // max(1, records.nbytes))
    pieces = {
        f"piece-{number:08d}": _piece(records.slice(start, rows))
        for number, start in enumerate(range(0, records.num_rows, rows))
    }
    return Snapshot(_KIND, _VERSION, 1, 0, pieces).to_bytes()


def check_rejected(file: pa.NativeFile) -> None:
    """Raise a SnapshotError if the file as a whole is not as it was written."""
    if file.read_at(len(_ARROW_FILE), 0) == _ARROW_FILE:
        for _ in _read_arrow_file(file):
            pass
        return
    size = file.size()
    header_end(file.read_at(HEAD_BYTES, 0), size)
    file.seek(0)
    digest = digest_of(_read_parts(file, size - DIGEST_BYTES))
    if digest != file.read_at(DIGEST_BYTES, size - DIGEST_BYTES):
        raise SnapshotError(DAMAGED)


def read_rejected(file: pa.NativeFile) -> Iterator[pa.Table]:
    """Read a checked file's records, piece by piece."""
    if file.read_at(len(_ARROW_FILE), 0) == _ARROW_FILE:
        yield from _read_arrow_file(file)
        return
    size = file.size()
    end = header_end(file.read_at(HEAD_BYTES, 0), size)
    header = Header.parse(file.read_at(end, 0), size)
    if (header.grouping, header.version) != (_KIND, _VERSION):
        raise SnapshotError(
            f"expected {_KIND} of version {_VERSION} (got {header.grouping} of {header.version})"
        )
    for block in header.blocks:
        # Of bytes in memory Arrow makes slices, so a wrong length allocates nothing.
        data = pa.py_buffer(file.read_at(block.end - block.start, block.start))
        try:
            yield _check_records(pa.ipc.open_stream(data).read_all())
        except (pa.ArrowException, OSError, ValueError) as error:
            raise SnapshotError(f"{block.name}: {_join_lines(error)}") from error


def _piece(records: pa.Table) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as writer:
        writer.write_table(records)
    return np.frombuffer(sink.getvalue(), np.uint8)


def _read_parts(file: pa.NativeFile, size: int) -> Iterator[bytes]:
    while size > 0:
        part = file.read(min(size, _READ_BYTES))
        if not part:
            raise SnapshotError(DAMAGED)
        size -= len(part)
        yield part


def _read_arrow_file(file: pa.NativeFile) -> Iterator[pa.Table]:
    try:
        pieces = pa.ipc.open_file(file)
        for number in range(pieces.num_record_batches):
            yield _check_records(pa.Table.from_batches([pieces.get_batch(number)]))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SnapshotError(f"damaged or cut short: {_join_lines(error)}") from error


def _check_records(records: pa.Table) -> pa.Table:
    records.validate(full=True)
    missing = [name for name in COLUMNS if name not in records.column_names]
    if missing:
        raise SnapshotError(f"rejected records without {', '.join(missing)}")
    return records


def _join_lines(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
