"""A grouping's state as a value: named arrays, to and from bytes, with a checksum.

Layout: magic, length of the header (4 bytes), header (JSON), the arrays one after the other, and a
BLAKE2b digest of all before it. Plain numbers only: reading a snapshot never runs code.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.errors import SnapshotError

_MAGIC = b"UNSKEW\x00\x01"
_DIGEST_BYTES = 16
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
            [_MAGIC, len(head).to_bytes(4, "little"), head, *(block.tobytes() for block in blocks)]
        )
        return body + _digest(body)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Snapshot":
        """Read what `to_bytes` wrote; anything else is a `SnapshotError`."""
        if len(data) < len(_MAGIC) + 4 + _DIGEST_BYTES or not data.startswith(_MAGIC):
            raise SnapshotError("snapshot: not a snapshot of a grouping, or cut short")
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        if _digest(body) != digest:
            raise SnapshotError("snapshot: the checksum does not match: damaged or cut short")
        start = len(_MAGIC) + 4
        end = start + int.from_bytes(body[len(_MAGIC) : start], "little")
        try:
            header = json.loads(body[start:end])
            arrays = _read_arrays(header["arrays"], body, end)
            return cls(
                str(header["grouping"]),
                int(header["version"]),
                int(header["partitions"]),
                int(header["seed"]),
                arrays,
                dict(header.get("options", {})),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"snapshot: the header cannot be read: {error}") from error

    def checksum(self) -> str:
        """A digest of the whole value: equal states have equal checksums."""
        return self.to_bytes()[-_DIGEST_BYTES:].hex()


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _read_arrays(entries: list[Any], body: bytes, offset: int) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for name, kind, shape in entries:
        if kind not in _KINDS:
            raise ValueError(f"array {name!r} has the unknown type {kind!r}")
        count = math.prod(shape)
        arrays[name] = np.frombuffer(body, kind, count, offset).reshape(shape).copy()
        offset += count * np.dtype(kind).itemsize
    if offset != len(body):
        raise ValueError(f"{len(body) - offset} bytes too many")
    return arrays
