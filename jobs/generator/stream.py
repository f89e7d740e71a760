"""What all streams share: chunks, event times with lateness, which records the job must reject."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from unskew.grouping.base import Int64s
from unskew.jobs.generator.settings import Settings
from unskew.jobs.generator.streams.draws import Flare, Keys, Zipf

CHUNK_RECORDS = 4096
"""Records made at once. A stream's bytes depend on it: it is part of what a seed means."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Chunk:
    """Some records in order."""

    values: list[bytes]
    times: Int64s
    """Event times in microseconds."""
    rejected: Int64s
    """For each record, the index of its reason in `Stream.reject_reasons`; -1: it is accepted."""
    columns: Mapping[str, Any]
    """The oracle's input, by record or, if there is a column `row`, by row of the operator."""


class Stream(ABC):
    """One kind of stream."""

    reject_reasons: ClassVar[Sequence[str]]
    """The reasons for which the job must reject some of its records."""
    time_step: ClassVar[int] = 1
    """Microseconds that event times are a multiple of."""
    fades: ClassVar[bool] = False
    names: Sequence[str]
    """The names of the keys."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        flare = Flare(settings.flare, settings.flare_every, settings.flare_for, self.fades)
        self.keys = Keys(
            Zipf(settings.keys, settings.skew),
            settings.keys,
            settings.seed,
            settings.drift,
            flare if settings.flare else None,
        )

    def name_of(self, key: int) -> str:
        """A key's name, by its number."""
        return self.names[key]

    def make_chunks(self) -> Iterator[Chunk]:
        """Make the stream from its first record to its last."""
        number = 0
        while self.settings.records is None or number * CHUNK_RECORDS < self.settings.records:
            yield self._make_chunk(number)
            number += 1

    def _make_chunk(self, number: int) -> Chunk:
        random = np.random.default_rng([self.settings.seed, number])
        moments = self._compute_due(number)
        late = random.random(CHUNK_RECORDS) < self.settings.late
        behind = random.integers(0, self.settings.late_by + 1, CHUNK_RECORDS)
        times = self.settings.start + moments - late * behind
        times -= times % self.time_step
        is_rejected = random.random(CHUNK_RECORDS) < self.settings.rejected
        kinds = random.integers(0, len(self.reject_reasons), CHUNK_RECORDS)
        rejected: Int64s = np.where(is_rejected, kinds, -1)
        return self.make_chunk(random, moments, times, rejected)

    def _compute_due(self, number: int) -> Int64s:
        """Compute when a chunk's records are due, in microseconds since the stream began."""
        numbers = np.arange(number * CHUNK_RECORDS, (number + 1) * CHUNK_RECORDS)
        due: Int64s = np.floor(numbers * (1e6 / self.settings.rate)).astype(np.int64)
        return due

    @abstractmethod
    def make_chunk(
        self, random: np.random.Generator, moments: Int64s, times: Int64s, rejected: Int64s
    ) -> Chunk:
        """Make the records due at `moments` with these event times, rejected or not."""


def join_texts(*parts: Any) -> pa.Array:
    """Join texts and columns of text side by side."""
    return pc.binary_join_element_wise(*parts, "")


def split_bytes(column: pa.Array) -> list[bytes]:
    """Split a fresh column without nulls into its texts."""
    assert column.offset == 0
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32, len(column) + 1).tolist()
    text = data.to_pybytes()
    return [text[begin:end] for begin, end in pairwise(ends)]


def format_times(times: Int64s) -> pa.Array:
    """Write microseconds since 1970 in ISO 8601 and UTC."""
    texts = pc.cast(pa.array(times).cast(pa.timestamp("us")), pa.string())
    return join_texts(pc.utf8_replace_slice(texts, 10, 11, "T"), "Z")
