"""Keys from a file, one a line, as the 64-bit hashes that Spark's `xxhash64` gives them.

So the loads that the simulator shows are those the job will have with the same grouping and seed.
The file is read in blocks, unpacked where it is compressed; lines end at a newline, a carriage
return before it does not count, and empty lines are skipped.

Reference: the XXH64 specification; Spark hashes with the seed 42.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.kernels import kernel
from unskew.grouping.simulation.streams.dumps import read_blocks

BLOCK_BYTES = 1 << 22
SPARK_SEED = np.uint64(42)

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_NEWLINE = 10
_RETURN = 13


def read_keys(
    path: Path,
    block_bytes: int = BLOCK_BYTES,
    hash_block: Callable[[bytes], UInt64s] | None = None,
    *,
    skip_first: bool = False,
) -> Iterator[UInt64s]:
    """The hashes of the lines of `path`, block by block; or what `hash_block` makes of them.

    `skip_first`: the first line is none of a record.
    """
    hash_block = hash_block or hash_lines
    rest = b""
    for block in read_blocks(path, block_bytes, skip_first=skip_first):
        text = rest + block
        end = text.rfind(b"\n") + 1
        if end:
            yield hash_block(text[:end])
        elif len(text) > block_bytes:
            raise GroupingError(f"trace: {path}: a line of more than {block_bytes} bytes")
        rest = text[end:]
    if rest:
        yield hash_block(rest + b"\n")


def hash_text(text: str) -> np.uint64:
    """Spark's `xxhash64(text)`, as an unsigned number."""
    content = np.frombuffer(text.encode(), np.uint8)
    return xxhash64(content, 0, content.size, SPARK_SEED)


def hash_lines(text: bytes) -> UInt64s:
    """The hashes of the lines of a text, each of which ends with a newline."""
    content = np.frombuffer(text, np.uint8)
    out = np.empty(np.count_nonzero(content == _NEWLINE), np.uint64)
    return out[: _hash_lines(content, out)]


def hash_pieces(content: bytes, ends: Int64s) -> UInt64s:
    """The hashes of the pieces of `content` that end at `ends`, whatever bytes are in them."""
    out = np.empty(ends.size, np.uint64)
    _hash_pieces(np.frombuffer(content, np.uint8), ends, out)
    return out


@kernel
def _hash_pieces(content: NDArray[np.uint8], ends: Int64s, out: UInt64s) -> None:
    start = 0
    for i in range(ends.size):
        out[i] = xxhash64(content, start, ends[i], SPARK_SEED)
        start = ends[i]


@kernel
def _hash_lines(content: NDArray[np.uint8], out: UInt64s) -> int:
    count = 0
    start = 0
    for i in range(content.size):
        if content[i] == _NEWLINE:
            stop = i
            if stop > start and content[stop - 1] == _RETURN:
                stop -= 1
            if stop > start:
                out[count] = xxhash64(content, start, stop, SPARK_SEED)
                count += 1
            start = i + 1
    return count


@kernel
def xxhash64(content: NDArray[np.uint8], start: int, stop: int, seed: np.uint64) -> np.uint64:
    """XXH64 of `content[start:stop]`."""
    at = start
    if stop - start >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + 32 <= stop:
            a = _round(a, _read(content, at, 8))
            b = _round(b, _read(content, at + 8, 8))
            c = _round(c, _read(content, at + 16, 8))
            d = _round(d, _read(content, at + 24, 8))
            at += 32
        value = _turn(a, 1) + _turn(b, 7) + _turn(c, 12) + _turn(d, 18)
        for lane in (a, b, c, d):
            value = (value ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        value = seed + _P5
    value += np.uint64(stop - start)
    while at + 8 <= stop:
        value = _turn(value ^ _round(np.uint64(0), _read(content, at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= stop:
        value = _turn(value ^ (_read(content, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < stop:
        value = _turn(value ^ (np.uint64(content[at]) * _P5), 11) * _P1
        at += 1
    value = (value ^ (value >> np.uint64(33))) * _P2
    value = (value ^ (value >> np.uint64(29))) * _P3
    return value ^ (value >> np.uint64(32))


@kernel
def _round(lane: np.uint64, value: np.uint64) -> np.uint64:
    return _turn(lane + value * _P2, 31) * _P1


@kernel
def _turn(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@kernel
def _read(content: NDArray[np.uint8], at: int, count: int) -> np.uint64:
    value = np.uint64(0)
    for i in range(count):
        value |= np.uint64(content[at + i]) << np.uint64(8 * i)
    return value
