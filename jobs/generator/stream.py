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
    reasons: Int64s
    """For each record, the index of its fault in `Stream.reject_reasons`; -1: none."""
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

    def chunks(self) -> Iterator[Chunk]:
        """The stream from its first record to its last."""
        number = 0
        while self.settings.records is None or number * CHUNK_RECORDS < self.settings.records:
            yield self._chunk(number)
            number += 1

    def _chunk(self, number: int) -> Chunk:
        random = np.random.default_rng([self.settings.seed, number])
        moments = self._moments(number)
        late = random.random(CHUNK_RECORDS) < self.settings.late
        behind = random.integers(0, self.settings.late_by + 1, CHUNK_RECORDS)
        times = self.settings.start + moments - late * behind
        times -= times % self.time_step
        broken = random.random(CHUNK_RECORDS) < self.settings.rejected
        kinds = random.integers(0, len(self.reject_reasons), CHUNK_RECORDS)
        reasons: Int64s = np.where(broken, kinds, -1)
        return self.made(random, moments, times, reasons)

    def _moments(self, number: int) -> Int64s:
        """When a chunk's records are due, in microseconds since the stream began."""
        numbers = np.arange(number * CHUNK_RECORDS, (number + 1) * CHUNK_RECORDS)
        due: Int64s = np.floor(numbers * (1e6 / self.settings.rate)).astype(np.int64)
        return due

    @abstractmethod
    def made(
        self, random: np.random.Generator, moments: Int64s, times: Int64s, reasons: Int64s
    ) -> Chunk:
        """The records due at `moments` with these event times and faults."""


def joined(*parts: Any) -> pa.Array:
    """Texts and columns of text side by side."""
    return pc.binary_join_element_wise(*parts, "")


def as_bytes(column: pa.Array) -> list[bytes]:
    """The texts of a fresh column without nulls."""
    assert column.offset == 0
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32, len(column) + 1).tolist()
    text = data.to_pybytes()
    return [text[begin:end] for begin, end in pairwise(ends)]


def as_texts(times: Int64s) -> pa.Array:
    """Microseconds since 1970 as ISO 8601 in UTC."""
    texts = pc.cast(pa.array(times).cast(pa.timestamp("us")), pa.string())
    return joined(pc.utf8_replace_slice(texts, 10, 11, "T"), "Z")
