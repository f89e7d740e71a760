"""A few of the rejected records of a batch, for the live page."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import pyarrow as pa

from unskew.grouping.errors import SnapshotError
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.hash_key import read_hash_key

SAMPLES = 5
_VALUE_SHOWN = 120


@dataclass(frozen=True)
class RejectedSample:
    """A rejected record: why, where it is in Kafka, and its value or a hash of it."""

    reason: str
    topic: str | None
    partition: int | None
    offset: int | None
    value: str
    """The beginning of the value where the job allows that, else its hash."""


def read_rejected_rows(journal: Journal, batch: int) -> list[dict[str, Any]]:
    """Read the first rejected records of a batch that are still in the journal."""
    # Displays alone need them: one that cannot be read is reported when they are published.
    with suppress(SnapshotError, OSError, pa.ArrowException):
        pieces: Iterator[pa.Table] = iter(journal.rejected(batch))
        rows = (row for piece in pieces for row in piece.slice(0, SAMPLES).to_pylist())
        return list(islice(rows, SAMPLES))
    return []


def make_samples(
    checkpoint: str, rows: Sequence[dict[str, Any]], *, values: bool
) -> tuple[RejectedSample, ...]:
    """Make what a display may show of rejected records."""
    with suppress(OSError, pa.ArrowException):
        key = None if values or not rows else read_hash_key(checkpoint)
        return tuple(_make_sample(row, key, values=values) for row in rows)
    return ()


def _make_sample(row: dict[str, Any], key: bytes | None, *, values: bool) -> RejectedSample:
    value: bytes = row["value"] or b""
    if values:
        shown = value[:_VALUE_SHOWN].decode(errors="replace")
    else:
        shown = blake2b(value, key=key or b"", digest_size=8).hexdigest()
    return RejectedSample(row["reason"], row["topic"], row["partition"], row["offset"], shown)
