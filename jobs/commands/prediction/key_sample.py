"""A sample of keys: as hashes in the order in which they are read, with what is known beside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.config.errors import UsageError
from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.simulation.loads import Work
from unskew.grouping.simulation.streams.key_files import hash_pieces
from unskew.grouping.simulation.streams.traces import Trace
from unskew.jobs.kafka.newest_records import RawSample

RECORDS_MIN = 1_000
"""The smallest sample that is predicted from."""


@dataclass(frozen=True)
class Sample:
    """Keys of the user's own."""

    where: str
    """What they are from, for messages."""
    hashes: UInt64s
    there: int
    """Records of the source, sampled or not."""
    without_key: int = 0
    text_of: Callable[[int], str] | None = None
    """The key of a record, by its number; None where only hashes are known."""
    partitions: Int64s | None = None
    times: Int64s | None = None
    """The records' times, where they have any."""
    work: Work | None = None
    """What the job's operator takes, measured on these records."""
    notes: tuple[str, ...] = ()
    sizes: Int64s | None = None
    """Bytes of the records, where they are rows of a table whose job balances those."""

    def check(self) -> "Sample":
        """Return this sample; a UsageError if it is too small to predict from."""
        if not self.hashes.size and self.without_key:
            raise UsageError(
                f"compare: {self.where}: none of {self.without_key:,} records has a key; name"
                " another expression with --key"
            )
        if not self.hashes.size:
            raise UsageError(f"compare: {self.where}: is empty; there must be records to sample")
        if self.hashes.size < RECORDS_MIN:
            raise UsageError(
                f"compare: {self.where}: {self.hashes.size:,} records with a key are too few to say"
                f" anything; at least {RECORDS_MIN:,} are needed"
            )
        return self

    def in_time(self) -> UInt64s:
        """Sort the hashes by time."""
        return self.hashes if self.times is None else self.hashes[self.order()]

    def cut(self, batch_records: int) -> list[UInt64s]:
        """Batches of `batch_records`, each in the order in which its tasks read it."""
        return [np.ascontiguousarray(self.hashes[batch]) for batch in self._batches(batch_records)]

    def cut_sizes(self, batch_records: int) -> list[Int64s] | None:
        """The bytes of the records of the same batches; None where they are not known."""
        if self.sizes is None:
            return None
        return [self.sizes[batch] for batch in self._batches(batch_records)]

    def _batches(self, batch_records: int) -> list[Int64s]:
        """The numbers of the records of each batch."""
        order = self.order()
        batches = []
        for start in range(0, order.size, batch_records):
            batch = order[start : start + batch_records]
            if self.partitions is not None:
                batch = batch[np.argsort(self.partitions[batch], kind="stable")]
            batches.append(batch)
        # The last batch is incomplete: drop it.
        left_over = len(batches) > 1 and batches[-1].size < batch_records
        return batches[:-1] if left_over else batches

    def order(self) -> Int64s:
        """The numbers of the records by time."""
        if self.times is None:
            return np.arange(self.hashes.size)
        return np.argsort(self.times, kind="stable")


def sample_trace(trace: Trace, spec: str, records_max: int) -> Sample:
    """The first records of a trace."""
    chunks: list[UInt64s] = []
    for chunk in trace.chunks():
        chunks.append(chunk.keys)
        if sum(keys.size for keys in chunks) >= records_max:
            break
    hashes = np.concatenate(chunks)[:records_max] if chunks else np.empty(0, np.uint64)
    return Sample(f"--trace {spec}", hashes, trace.records)


def sample_texts(where: str, keys: Sequence[bytes | None], raw: RawSample) -> Sample:
    """Records with these keys, of which some are missing."""
    kept = [number for number, key in enumerate(keys) if key is not None]
    texts = [key for key in keys if key is not None]
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    hashes = hash_pieces(b"".join(texts), ends) if texts else np.empty(0, np.uint64)
    return Sample(
        where,
        hashes,
        raw.there,
        len(keys) - len(kept),
        lambda number: _show_key(texts[number]),
        np.array(raw.partitions, np.int64)[kept] if raw.partitions else None,
        np.array(raw.timestamps_ms, np.int64)[kept] if raw.timestamps_ms else None,
        notes=_describe_bytes(texts),
    )


def _describe_bytes(texts: Sequence[bytes]) -> tuple[str, ...]:
    """Note that keys are no text, if some are not; a look at some of them is enough."""
    looked = texts[:: max(1, len(texts) // 10_000)]
    binary = sum(not _is_text(text) for text in looked)
    if not binary:
        return ()
    share = binary / len(looked)
    return (f"{share:.0%} of the keys are no UTF-8 text: they are compared byte by byte.",)


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def _show_key(key: bytes) -> str:
    return key.decode() if _is_text(key) else f"0x{key.hex()}"
