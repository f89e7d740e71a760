"""A grouping's state as a value: named arrays, to and from bytes, with a checksum.

Layout: magic, length of the header (4 bytes), header (JSON), the arrays one after the other, and a
BLAKE2b digest of all before it. Plain numbers only: reading a snapshot never runs code.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.errors import SnapshotError

Arrays = Mapping[str, NDArray[Any]]

MAGIC = b"UNSKEW\x00\x01"
DIGEST_BYTES = 16
HEAD_BYTES = len(MAGIC) + 4
"""The bytes before the header: magic, and the header's length."""
DAMAGED = "snapshot: the checksum does not match: damaged or cut short"
_KINDS = frozenset({"<u8", "<i8", "<f8", "<u4", "<i4", "<f4", "<u2", "<i2", "|u1", "|i1"})


@dataclass(frozen=True)
class Snapshot:
    """The state of one grouping at one moment. Its arrays belong to it alone."""

    grouping: str
    version: int
    partitions: int
    seed: int
    arrays: Mapping[str, NDArray[Any]]
    options: Mapping[str, object] = field(default_factory=dict)
    """The grouping's options, as JSON values; empty if it has none."""

    @property
    def kind(self) -> tuple[object, ...]:
        """What a grouping that goes on from it must agree with."""
        options = tuple(sorted((name, str(value)) for name, value in self.options.items()))
        return self.grouping, self.version, self.partitions, self.seed, options

    def to_bytes(self) -> bytes:
        """The snapshot as bytes that `from_bytes` reads back."""
        names = sorted(self.arrays)
        blocks = [_little_endian(self.arrays[name]) for name in names]
        header = {
            "grouping": self.grouping,
            "version": self.version,
            "partitions": self.partitions,
            "seed": self.seed,
            "options": dict(self.options),
            "arrays": [
                [name, block.dtype.str, list(block.shape)]
                for name, block in zip(names, blocks, strict=True)
            ],
        }
        head = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        body = b"".join(
            [MAGIC, len(head).to_bytes(4, "little"), head, *(block.tobytes() for block in blocks)]
        )
        return body + digest_of([body])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Snapshot":
        """Read what `to_bytes` wrote; anything else is a `SnapshotError`."""
        header_end(data, len(data))
        body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
        if digest_of([body]) != digest:
            raise SnapshotError(DAMAGED)
        header = Header.parse(data, len(data))
        arrays = {block.name: block.read(body) for block in header.blocks}
        return cls(
            header.grouping,
            header.version,
            header.partitions,
            header.seed,
            arrays,
            header.options,
        )

    def checksum(self) -> str:
        """A digest of the whole value: equal states have equal checksums."""
        return self.to_bytes()[-DIGEST_BYTES:].hex()


@dataclass(frozen=True)
class Block:
    """Where the bytes of one array are."""

    name: str
    kind: str
    shape: tuple[int, ...]
    start: int

    @property
    def end(self) -> int:
        """The position after its last byte."""
        return self.start + math.prod(self.shape) * np.dtype(self.kind).itemsize

    def read(self, data: bytes) -> NDArray[Any]:
        """The array, as a copy."""
        count = math.prod(self.shape)
        if not count:
            return np.empty(self.shape, self.kind)
        return np.frombuffer(data, self.kind, count, self.start).reshape(self.shape).copy()


@dataclass(frozen=True)
class Header:
    """What a snapshot says of itself, checked against the size of the whole."""

    grouping: str
    version: int
    partitions: int
    seed: int
    options: Mapping[str, object]
    blocks: tuple[Block, ...]

    @classmethod
    def parse(cls, beginning: bytes, size: int) -> "Header":
        """Read it from the beginning of a snapshot of `size` bytes, or raise a `SnapshotError`."""
        end = header_end(beginning, size)
        try:
            return cls._parse_values(
                json.loads(beginning[HEAD_BYTES:end]), end, size - DIGEST_BYTES
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise SnapshotError(_unclear(error)) from error

    @classmethod
    def _parse_values(cls, values: Any, start: int, end: int) -> "Header":
        blocks: list[Block] = []
        for name, kind, shape in values["arrays"]:
            block = Block(
                _text(name), _kind(kind), tuple(_size(size, end) for size in shape), start
            )
            blocks.append(block)
            start = block.end
        if start != end:
            raise ValueError(f"the arrays end at byte {start}, the file at {end}")
        if len({block.name for block in blocks}) != len(blocks):
            raise ValueError("two arrays have one name")
        return cls(
            _text(values["grouping"]),
            _number(values["version"]),
            _number(values["partitions"]),
            _number(values["seed"]),
            dict(values.get("options", {})),
            tuple(blocks),
        )


def header_end(beginning: bytes, size: int) -> int:
    """Find where the header of a snapshot of `size` bytes ends, by its first HEAD_BYTES."""
    if size < HEAD_BYTES + DIGEST_BYTES or not beginning.startswith(MAGIC):
        raise SnapshotError("snapshot: not a snapshot of a grouping, or cut short")
    end = HEAD_BYTES + int.from_bytes(beginning[len(MAGIC) : HEAD_BYTES], "little")
    if end > size - DIGEST_BYTES:
        raise SnapshotError(DAMAGED)
    return end


def digest_of(parts: Iterable[bytes | memoryview]) -> bytes:
    """The checksum of all parts, one after the other."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _unclear(error: Exception) -> str:
    reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return f"snapshot: the header cannot be read: {reason or type(error).__name__}"


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _kind(value: object) -> str:
    if value not in _KINDS:
        raise ValueError(f"an array has the unknown type {value!r}")
    return str(value)


def _size(value: object, most: int) -> int:
    if not 0 <= _number(value) <= most:
        raise ValueError(f"an array has the size {value!r} in {most} bytes")
    return _number(value)


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"expected a whole number (got {value!r})")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text (got {value!r})")
    return value
