"""`posts`: users and the hashtags of their posts as JSON, for the job `hashtags`."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.grouping.base import Int64s
from unskew.jobs.generator.settings import Settings
from unskew.jobs.generator.stream import (
    CHUNK_RECORDS,
    Chunk,
    Stream,
    format_times,
    join_texts,
    split_bytes,
)
from unskew.jobs.generator.streams import names
from unskew.jobs.generator.streams.draws import Zipf

_USER_SKEW = 0.6
_TAGS = np.array([0, 1, 1, 1, 1, 2, 2, 3])
"""Hashtags of a post, one of these at random."""
_OPENINGS = pa.array(
    ["Look at this", "So it begins", "Who would have thought", "Not again", "On my way", "At last"]
)


class Posts(Stream):
    """Some posts have no hashtag, some name one twice, a trend comes first in its post."""

    reject_reasons = ("not_decoded", "user_null", "null_key", "no_event_time")
    fades = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = names.make_words(settings.keys)
        self._tags = pa.array(self.names)
        self._users = Zipf(settings.users, _USER_SKEW)

    def make_chunk(
        self, random: np.random.Generator, moments: Int64s, times: Int64s, rejected: Int64s
    ) -> Chunk:
        users = self._users.draw(random, CHUNK_RECORDS)
        counts = _TAGS[random.integers(0, _TAGS.size, CHUNK_RECORDS)]
        ends = np.concatenate([[0], np.cumsum(counts)])
        keys = self.keys.draw(random, np.repeat(moments, counts))
        firsts = ends[:-1][counts > 0]
        keys[firsts] = self.keys.replace_flared(random, keys[firsts], moments[counts > 0])
        openings = _OPENINGS.take(pa.array(random.integers(0, len(_OPENINGS), CHUNK_RECORDS)))
        tags = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), self._tags.take(pa.array(keys)))
        columns = (
            join_texts("u", pc.cast(pa.array(users), pa.string())),
            _join_texts_of_posts(openings, tags, counts),
            _quote_tags(tags, counts),
            format_times(times),
        )
        values = split_bytes(_write_json(*columns))
        for index in np.flatnonzero(rejected >= 0).tolist():
            kind = self.reject_reasons[rejected[index]]
            values[index] = _write_rejected(
                kind, values[index], *(column[index].as_py() for column in columns)
            )
        rows = np.repeat(np.arange(CHUNK_RECORDS), counts)
        return Chunk(values, times, rejected, {"row": rows, "key": keys, "user": users})


def _join_texts_of_posts(openings: pa.Array, tags: pa.Array, counts: Int64s) -> pa.Array:
    marks = pc.if_else(pa.array(counts > 0), " #", "")
    return join_texts(openings, marks, pc.binary_join(tags, " #"))


def _quote_tags(tags: pa.Array, counts: Int64s) -> pa.Array:
    marks = pc.if_else(pa.array(counts > 0), '"', "")
    return join_texts("[", marks, pc.binary_join(tags, '","'), marks, "]")


def _write_json(users: pa.Array, texts: pa.Array, tags: pa.Array, times: pa.Array) -> pa.Array:
    parts = ('{"user":"', users, '","text":"', texts, '","hashtags":', tags)
    return join_texts(*parts, ',"posted_at":"', times, '"}')


def _write_rejected(kind: str, whole: bytes, user: str, text: str, tags: str, when: str) -> bytes:
    """Write the post so that the job rejects it, for the reason `kind`."""
    texts = {
        "user_null": f'{{"user":null,"text":"{text}","hashtags":{tags},"posted_at":"{when}"}}',
        "null_key": f'{{"user":"{user}","text":"{text}","posted_at":"{when}"}}',
        "no_event_time": f'{{"user":"{user}","text":"{text}","hashtags":{tags}}}',
    }
    # Cut off in the middle of a name: no JSON at all.
    return texts[kind].encode() if kind in texts else whole[: whole.index(b"text") + 2]
