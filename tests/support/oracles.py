"""Records for whole jobs, and what plain Python makes of them: the oracle of every operator."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np

# Without a zone, as `collect` gives them: the tests' own zone is set to UTC.
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00")
START = datetime.fromisoformat("2026-03-01T12:00:00")
SCHEMA = (
    "symbol STRING, price DECIMAL(18, 4), volume BIGINT, user STRING, hashtags ARRAY<STRING>,"
    " text STRING, at TIMESTAMP"
)
TAGS = ["spark", "kafka", "skew", "Σ"]
OPERATORS: dict[str, dict[str, Any]] = {
    "word_count": {"type": "word_count", "text": "text"},
    "vwap": {"type": "vwap"},
    "hashtags": {"type": "hashtags"},
    "paced": {"type": "paced", "key": "symbol", "cost": "0 s"},
}
WINDOWS: dict[str, dict[str, Any]] = {
    "none": {"type": "none"},
    "tumbling": {"type": "tumbling", "duration": "20 s"},
    "sliding": {"type": "sliding", "duration": "30 s", "slide": "20 s"},
}
WindowedKey = tuple[Any, ...]


def records(seed: int, count: int, users: int = 60) -> list[dict[str, Any]]:
    """Valid records within two minutes, many at the same second."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        tags = generator.choice(TAGS, generator.integers(0, 4)).tolist()
        made.append(
            {
                "symbol": f"S{min(generator.zipf(1.5), 6)}",
                "price": str(Decimal(int(generator.integers(-5_000, 10**7))).scaleb(-4)),
                "volume": int(generator.integers(1, 10**9)),
                "user": f"u{generator.integers(0, users)}",
                "hashtags": [*tags, "", None],
                "text": " ".join(generator.choice(["It's", "ONE", "two", "—"], 3).tolist()),
                "at": (START + timedelta(seconds=int(generator.integers(0, 120)))).isoformat(),
            }
        )
    return made


def windows_of(at: datetime, window: dict[str, Any]) -> Iterator[WindowedKey]:
    if window["type"] == "none":
        yield ()
        return
    width = int(window["duration"].split()[0])
    slide = int(window.get("slide", window["duration"]).split()[0])
    second = int((at - EPOCH).total_seconds())
    start = second - second % slide
    while start > second - width:
        begin = EPOCH + timedelta(seconds=start)
        yield begin, begin + timedelta(seconds=width)
        start -= slide


def keys_of(row: dict[str, Any], operator: str) -> list[str]:
    if operator == "word_count":
        return [word.lower() for word in row["text"].split() if word != "—"]
    if operator == "hashtags":
        return sorted({tag for tag in row["hashtags"] if tag})
    return [row["symbol"]]


def vwap(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return averaged([(row["at"], Decimal(row["price"]), Decimal(row["volume"])) for row in rows])


def averaged(trades: list[tuple[Any, Decimal, Any]]) -> dict[str, Any]:
    """The totals of trades, each with its time, price and volume."""
    with localcontext(prec=100, rounding=ROUND_HALF_UP):
        volume = sum(traded for _, _, traded in trades)
        amount = sum((price * traded for _, price, traded in trades), Decimal(0))
        average = (amount / volume).quantize(Decimal("0.000001"))
    prices = [price for _, price, _ in trades]
    return {
        "vwap": average,
        "volume": volume,
        "trades": len(trades),
        "high": max(prices),
        "low": min(prices),
        "open": min(trades)[1],
        "close": max(trades)[1],
    }


def hashtags(rows: list[dict[str, Any]]) -> dict[str, Any]:
    times = [datetime.fromisoformat(row["at"]) for row in rows]
    return {
        "posts": len(rows),
        "users": len({row["user"] for row in rows}),
        "first_seen": min(times),
        "last_seen": max(times),
    }


def counted(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"count": len(rows)}


ORACLES: dict[str, Callable[[list[dict[str, Any]]], dict[str, Any]]] = {
    "word_count": counted,
    "vwap": vwap,
    "hashtags": hashtags,
    "paced": counted,
}


def expected(
    rows: list[dict[str, Any]], operator: str, window: dict[str, Any]
) -> dict[WindowedKey, dict[str, Any]]:
    groups = defaultdict(list)
    for row in rows:
        for windowed_key in windows_of(datetime.fromisoformat(row["at"]), window):
            for key in keys_of(row, operator):
                groups[*windowed_key, key].append(row)
    return {windowed_key: ORACLES[operator](members) for windowed_key, members in groups.items()}
