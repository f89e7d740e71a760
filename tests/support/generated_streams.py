"""Streams made by `unskew generate`, and what plain Python reads in their bytes."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.oracles import averaged
from unskew.jobs.__main__ import main

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WindowedKey = tuple[Any, ...]
"""Start and end of the window, where there are windows, and the key."""


def generated(path: Path, *words: str) -> list[bytes]:
    """The lines of a file that `unskew generate WORDS --out` makes."""
    assert main(["generate", *words, "--out", str(path)]) == 0
    return path.read_bytes().removesuffix(b"\n").split(b"\n")


def kafka_rows(path: Path) -> list[tuple[bytes, datetime]]:
    """Value and timestamp of the records in a Parquet file."""
    table = pq.read_table(path)
    return list(zip(table["value"].to_pylist(), table["timestamp"].to_pylist(), strict=True))


def read_oracle(path: Path) -> tuple[dict[str, Any], dict[WindowedKey, dict[str, Any]]]:
    """The head of an oracle's file, and its totals by window and key."""
    head = json.loads(path.read_text(), parse_float=Decimal)
    totals: dict[WindowedKey, dict[str, Any]] = {}
    for row in head.pop("totals"):
        bounds = [
            datetime.fromisoformat(row.pop(name))
            for name in ("window_start", "window_end")
            if name in row
        ]
        windowed_key = (*bounds, row.pop("key"))
        assert windowed_key not in totals
        totals[windowed_key] = row
    return head, totals


def windows_of(at: datetime, window: int | None, slide: int | None) -> Iterator[WindowedKey]:
    """Start and end of every window, in seconds, that a time is in."""
    if window is None:
        yield ()
        return
    step = slide or window
    second = int((at - EPOCH).total_seconds() // 1)
    start = second - second % step
    while start > second - window:
        begin = EPOCH + timedelta(seconds=start)
        yield begin, begin + timedelta(seconds=window)
        start -= step


def counted(
    stream: str,
    records: list[tuple[bytes, datetime]],
    window: int | None = None,
    slide: int | None = None,
) -> tuple[Counter[str], dict[WindowedKey, dict[str, Any]]]:
    """What the stream's job must give, read from the bytes: rejected records, and totals."""
    rejected: Counter[str] = Counter()
    groups: dict[WindowedKey, list[Any]] = defaultdict(list)
    for value, timestamp in records:
        reason, keys, at, measured = READERS[stream](value, timestamp)
        if reason:
            rejected[reason] += 1
            continue
        for windowed_key in windows_of(at, window, slide):
            for key in keys:
                groups[*windowed_key, key].append((at, measured))
    return rejected, {
        windowed_key: TOTALS[stream](values) for windowed_key, values in groups.items()
    }


Read = tuple[str, list[str], datetime, Any]
"""The reject reason or "", the keys, the event time, and what is aggregated."""


def _line(value: bytes, timestamp: datetime) -> Read:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "not_utf8", [], timestamp, None
    return "", re.findall(r"[^\W_]+", text.lower()), timestamp, None


def _trade(value: bytes, timestamp: datetime) -> Read:
    try:
        trade = json.loads(value, parse_float=Decimal)
    except ValueError:
        return "not_decoded", [], timestamp, None
    if "price" not in trade:
        return "price_null", [], timestamp, None
    if trade["volume"] < 0:
        return "volume_negative", [], timestamp, None
    if trade["symbol"] is None:
        return "null_key", [], timestamp, None
    if "traded_at" not in trade:
        return "no_event_time", [], timestamp, None
    at = datetime.fromisoformat(trade["traded_at"])
    return "", [trade["symbol"]], at, (trade["price"], trade["volume"])


def _post(value: bytes, timestamp: datetime) -> Read:
    try:
        post = json.loads(value)
    except ValueError:
        return "not_decoded", [], timestamp, None
    if post["user"] is None:
        return "user_null", [], timestamp, None
    if "hashtags" not in post:
        return "null_key", [], timestamp, None
    if "posted_at" not in post:
        return "no_event_time", [], timestamp, None
    assert re.findall(r"#(\w+)", post["text"]) == post["hashtags"]
    return (
        "",
        sorted(set(post["hashtags"])),
        datetime.fromisoformat(post["posted_at"]),
        post["user"],
    )


def _tag(posts: list[Any]) -> dict[str, Any]:
    return {
        "posts": len(posts),
        "users": len({user for _, user in posts}),
        "first_seen": _shown(min(at for at, _ in posts)),
        "last_seen": _shown(max(at for at, _ in posts)),
    }


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _average(values: list[Any]) -> dict[str, Any]:
    return averaged([(at, price, volume) for at, (price, volume) in values])


READERS = {"lines": _line, "trades": _trade, "posts": _post}
TOTALS = {"lines": lambda values: {"count": len(values)}, "trades": _average, "posts": _tag}
