"""`posts`: users and the hashtags of their posts as JSON, for the job `hashtags`."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.grouping.base import Int64s
from unskew.jobs.generator.settings import Settings
from unskew.jobs.generator.stream import CHUNK_RECORDS, Chunk, Stream, as_bytes, as_texts, joined
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
        self.names = names.words(settings.keys)
        self._tags = pa.array(self.names)
        self._users = Zipf(settings.users, _USER_SKEW)

    def made(
        self, random: np.random.Generator, moments: Int64s, times: Int64s, reasons: Int64s
    ) -> Chunk:
        users = self._users.draw(random, CHUNK_RECORDS)
        counts = _TAGS[random.integers(0, _TAGS.size, CHUNK_RECORDS)]
        ends = np.concatenate([[0], np.cumsum(counts)])
        keys = self.keys.draw(random, np.repeat(moments, counts))
        firsts = ends[:-1][counts > 0]
        keys[firsts] = self.keys.flared(random, keys[firsts], moments[counts > 0])
        openings = _OPENINGS.take(pa.array(random.integers(0, len(_OPENINGS), CHUNK_RECORDS)))
        tags = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), self._tags.take(pa.array(keys)))
        columns = (
            joined("u", pc.cast(pa.array(users), pa.string())),
            _text(openings, tags, counts),
            _quoted(tags, counts),
            as_texts(times),
        )
        values = as_bytes(_json(*columns))
        for index in np.flatnonzero(reasons >= 0).tolist():
            kind = self.reject_reasons[reasons[index]]
            values[index] = _broken(
                kind, values[index], *(column[index].as_py() for column in columns)
            )
        rows = np.repeat(np.arange(CHUNK_RECORDS), counts)
        return Chunk(values, times, reasons, {"row": rows, "key": keys, "user": users})


def _text(openings: pa.Array, tags: pa.Array, counts: Int64s) -> pa.Array:
    marks = pc.if_else(pa.array(counts > 0), " #", "")
    return joined(openings, marks, pc.binary_join(tags, " #"))


def _quoted(tags: pa.Array, counts: Int64s) -> pa.Array:
    marks = pc.if_else(pa.array(counts > 0), '"', "")
    return joined("[", marks, pc.binary_join(tags, '","'), marks, "]")


def _json(users: pa.Array, texts: pa.Array, tags: pa.Array, times: pa.Array) -> pa.Array:
    parts = ('{"user":"', users, '","text":"', texts, '","hashtags":', tags)
    return joined(*parts, ',"posted_at":"', times, '"}')


def _broken(kind: str, whole: bytes, user: str, text: str, tags: str, when: str) -> bytes:
    """The post with one fault."""
    texts = {
        "user_null": f'{{"user":null,"text":"{text}","hashtags":{tags},"posted_at":"{when}"}}',
        "null_key": f'{{"user":"{user}","text":"{text}","posted_at":"{when}"}}',
        "no_event_time": f'{{"user":"{user}","text":"{text}","hashtags":{tags}}}',
    }
    # Cut off in the middle of a name: no JSON at all.
    return texts[kind].encode() if kind in texts else whole[: whole.index(b"text") + 2]
