"""`lines`: sentences of Zipf words, for the job `word_count`."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.grouping.base import Int64s
from unskew.jobs.generator.settings import Settings
from unskew.jobs.generator.stream import CHUNK_RECORDS, Chunk, Stream, join_texts, split_bytes
from unskew.jobs.generator.streams import names


class Lines(Stream):
    """Text; its event time is the time of the Kafka record, in milliseconds."""

    reject_reasons = ("not_utf8",)
    time_step = 1000

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = names.make_words(settings.keys)
        # Beside each word the form in which it begins a sentence: the job counts both as one.
        self._words = pa.array([*self.names, *(name.capitalize() for name in self.names)])
        self._fewest = settings.words - settings.words // 2
        self._most = settings.words + settings.words // 2

    def make_chunk(
        self, random: np.random.Generator, moments: Int64s, times: Int64s, rejected: Int64s
    ) -> Chunk:
        lengths = random.integers(self._fewest, self._most + 1, CHUNK_RECORDS)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        when = np.repeat(moments, lengths)
        keys = self.keys.replace_flared(random, self.keys.draw(random, when), when)
        shown = keys.copy()
        shown[ends[:-1]] += len(self.names)
        words = pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()), self._words.take(pa.array(shown))
        )
        values = split_bytes(join_texts(pc.binary_join(words, " "), "."))
        for index in np.flatnonzero(rejected >= 0).tolist():
            values[index] = b"\xff\xfe" + values[index]
        rows = np.repeat(np.arange(CHUNK_RECORDS), lengths)
        return Chunk(values, times, rejected, {"row": rows, "key": keys})
