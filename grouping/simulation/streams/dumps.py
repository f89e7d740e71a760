"""Files of dumps, read as they are published: plain, or compressed by gzip, bzip2 or xz.

What a file is compressed by follows from its first bytes, not from its name.
"""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path

from unskew.grouping.errors import GroupingError

_OPENERS: dict[bytes, Callable[[Path], BufferedIOBase]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_TITLES_BYTES = 1 << 16
_BROKEN = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def open_dump(path: Path) -> BufferedIOBase:
    """The file, opened to read what it says."""
    with path.open("rb") as file:
        begin = file.read(max(map(len, _OPENERS)))
    for mark, open_file in _OPENERS.items():
        if begin.startswith(mark):
            return open_file(path)
    return path.open("rb")


def read_blocks(path: Path, block_bytes: int, *, skip_first: bool = False) -> Iterator[bytes]:
    """Read the file in blocks of at most this many bytes, without its first line if asked."""
    try:
        with open_dump(path) as file:
            if skip_first:
                file.readline()
            while block := file.read(block_bytes):
                yield block
    except _BROKEN as error:
        raise GroupingError(f"trace: {path}: cannot be unpacked: {error}") from error


def first_line(path: Path) -> str:
    """The first line, without its end."""
    line = next(read_blocks(path, _TITLES_BYTES), b"").split(b"\n", 1)[0]
    return line.decode(errors="replace")
