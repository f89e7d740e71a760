"""`trades`: symbols, prices and volumes as JSON, for the job `vwap`."""

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

TICKS = 10_000
"""A price is a whole number of ticks of 1/TICKS: four decimals."""
_SWING_SECONDS = 600
_POINTS = 10_000
_PRICES = 1_000_004  # sets the draws of prices apart from those of chunks


class Trades(Stream):
    """Prices swing slowly around one of the symbol's own, and jitter."""

    reject_reasons = ("not_decoded", "null_key", "volume_negative", "price_null", "no_event_time")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = names.make_symbols(settings.keys)
        self._symbols = pa.array(self.names)
        random = np.random.default_rng([settings.seed, _PRICES])
        self._means = random.integers(5 * TICKS, 500 * TICKS, settings.keys)
        self._phases = random.integers(0, _SWING_SECONDS, settings.keys)

    def make_chunk(
        self, random: np.random.Generator, moments: Int64s, times: Int64s, rejected: Int64s
    ) -> Chunk:
        keys = self.keys.replace_flared(random, self.keys.draw(random, moments), moments)
        # In points of the mean price, a triangle from -1.5 to 1.5 %; whole numbers throughout.
        phases = (moments // 1_000_000 + self._phases[keys]) % _SWING_SECONDS
        swing = np.abs(phases - _SWING_SECONDS // 2) - _SWING_SECONDS // 4
        points = swing + random.integers(-20, 21, CHUNK_RECORDS)
        ticks = self._means[keys] + self._means[keys] * points // _POINTS
        volumes = 1 + random.integers(0, 1000, CHUNK_RECORDS) ** 2 // 1000
        symbols = self._symbols.take(pa.array(keys))
        prices = join_texts(
            pc.cast(pa.array(ticks // TICKS), pa.string()),
            ".",
            pc.utf8_lpad(pc.cast(pa.array(ticks % TICKS), pa.string()), 4, "0"),
        )
        columns = (symbols, prices, pc.cast(pa.array(volumes), pa.string()), format_times(times))
        values = split_bytes(_write_json(*columns))
        for index in np.flatnonzero(rejected >= 0).tolist():
            kind = self.reject_reasons[rejected[index]]
            values[index] = _write_rejected(
                kind, values[index], *(column[index].as_py() for column in columns)
            )
        return Chunk(values, times, rejected, {"key": keys, "ticks": ticks, "volume": volumes})


def _write_json(
    symbols: pa.Array, prices: pa.Array, volumes: pa.Array, times: pa.Array
) -> pa.Array:
    parts = ('{"symbol":"', symbols, '","price":', prices, ',"volume":', volumes)
    return join_texts(*parts, ',"traded_at":"', times, '"}')


def _write_rejected(
    kind: str, whole: bytes, symbol: str, price: str, volume: str, when: str
) -> bytes:
    """Write the trade so that the job rejects it, for the reason `kind`."""
    texts = {
        "null_key": f'{{"symbol":null,"price":{price},"volume":{volume},"traded_at":"{when}"}}',
        "volume_negative": (
            f'{{"symbol":"{symbol}","price":{price},"volume":-{volume},"traded_at":"{when}"}}'
        ),
        "price_null": f'{{"symbol":"{symbol}","volume":{volume},"traded_at":"{when}"}}',
        "no_event_time": f'{{"symbol":"{symbol}","price":{price},"volume":{volume}}}',
    }
    # Cut off in the middle of a name: no JSON at all.
    return texts[kind].encode() if kind in texts else whole[: whole.index(b"price") + 3]
