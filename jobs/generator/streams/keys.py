"""`keys`: a word a record, drawn from a trace of `unskew simulate`; for the job `word_count`.

The traces like published streams have tens of millions of keys, so no list of their names is made:
a word is spelled from its key's 64 bits.
"""

from collections.abc import Iterator

import numpy as np

from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.simulation.streams.traces import open_trace
from unskew.jobs.generator.settings import Settings
from unskew.jobs.generator.stream import CHUNK_RECORDS, Chunk, Stream

_DIGITS = 16


class TraceKeys(Stream):
    """Words; the event time is the time of the Kafka record, in milliseconds."""

    reject_reasons = ("not_utf8",)
    time_step = 1000

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        assert settings.trace is not None
        # The trace's own seed goes on from the first stream's.
        self._trace = open_trace(settings.trace, settings.seed - 1)
        self._pieces = self._cut()

    def name_of(self, key: int) -> str:
        return f"k{key:0{_DIGITS}x}"

    def make_chunk(
        self, random: np.random.Generator, moments: Int64s, times: Int64s, rejected: Int64s
    ) -> Chunk:
        keys = next(self._pieces)
        text = keys.astype(">u8").tobytes().hex()
        values = [
            f"k{text[begin : begin + _DIGITS]}".encode() for begin in range(0, len(text), _DIGITS)
        ]
        for index in np.flatnonzero(rejected[: keys.size] >= 0).tolist():
            values[index] = b"\xff\xfe" + values[index]
        return Chunk(values, times[: keys.size], rejected[: keys.size], {"key": keys})

    def _cut(self) -> Iterator[UInt64s]:
        for chunk in self._trace.chunks():
            for begin in range(0, chunk.keys.size, CHUNK_RECORDS):
                yield chunk.keys[begin : begin + CHUNK_RECORDS]
