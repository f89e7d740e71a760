"""Totals of whole streaming jobs equal plain Python over the same records, for every window."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from config.loader import load_job
from jobs.facts import facts_of
from jobs.service import BatchDone, Service

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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
Place = tuple[Any, ...]


def records(seed: int, count: int) -> list[dict[str, Any]]:
    """Good records within two minutes, many at the same second."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        tags = generator.choice(TAGS, generator.integers(0, 4)).tolist()
        made.append(
            {
                "symbol": f"S{min(generator.zipf(1.5), 6)}",
                "price": str(Decimal(int(generator.integers(-5_000, 10**7))).scaleb(-4)),
                "volume": int(generator.integers(1, 10**9)),
                "user": f"u{generator.integers(0, 60)}",
                "hashtags": [*tags, "", None],
                "text": " ".join(generator.choice(["It's", "ONE", "two", "—"], 3).tolist()),
                "at": (START + timedelta(seconds=int(generator.integers(0, 120)))).isoformat(),
            }
        )
    return made


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


class Ran:
    """A job run to its end over files: its results, and what was refused."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, **changes: Any) -> None:
        self.job = load_job(
            "word_count",
            {
                "name": "totals",
                "source": {"type": "files", "path": str(folder / "in"), "files_per_batch": 1},
                "decode": {"type": "json", "schema": SCHEMA},
                "event_time": "at",
                "partitions": 3,
                "merge": {"partitions": 2, "output": "update"},
                "trigger": {"type": "available_now"},
                "sinks": [{"type": "memory", "table": "totals"}],
                "dead_letters": {"type": "files", "path": str(folder / "bad")},
                "checkpoint": str(folder / "checkpoints" / name),
                **changes,
            },
        )
        self.batches: list[BatchDone] = []
        service = Service(self.job, spark, (self.batches.append,))
        service.run()
        self.rows = [row.asDict() for row in spark.table("totals").orderBy("batch_id").collect()]
        self.types = {
            field.name: field.dataType.simpleString() for field in spark.table("totals").schema
        }
        self.bad: Counter[str] = Counter()
        for batch in service.journal.batches():
            facts = facts_of(service.journal, batch)
            self.bad.update(facts.bad if facts else {})

    @property
    def last(self) -> dict[Place, dict[str, Any]]:
        """The last result of each window and key."""
        found = {}
        for row in self.rows:
            columns = {name: value for name, value in row.items() if name != "batch_id"}
            place = [columns.pop(name) for name in ("window_start", "window_end") if name in row]
            found[*place, columns.pop("key")] = columns
        return found


def windows_of(at: datetime, window: dict[str, Any]) -> Iterator[Place]:
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
    trades = [(row["at"], Decimal(row["price"]), Decimal(row["volume"])) for row in rows]
    with localcontext(prec=100, rounding=ROUND_HALF_UP):
        volume = sum(traded for _, _, traded in trades)
        amount = sum(price * traded for _, price, traded in trades)
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
) -> dict[Place, dict[str, Any]]:
    groups = defaultdict(list)
    for row in rows:
        for place in windows_of(datetime.fromisoformat(row["at"]), window):
            for key in keys_of(row, operator):
                groups[*place, key].append(row)
    return {place: ORACLES[operator](members) for place, members in groups.items()}


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # collect() gives timestamps in the process's own zone.
    import time

    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


# `paced` counts as `word_count` does: one kind of window is enough for it.
PAIRS = [
    (operator, window)
    for operator in OPERATORS
    for window in WINDOWS
    if operator != "paced" or window == "sliding"
]


@pytest.mark.parametrize(("operator", "window"), PAIRS)
def test_totals_are_those_of_plain_python(
    spark: SparkSession, tmp_path: Path, operator: str, window: str
) -> None:
    rows = records(7, 600)
    write(tmp_path / "in", "1.json", rows[:400])
    write(tmp_path / "in", "2.json", rows[400:])
    changes = {
        "operator": OPERATORS[operator],
        "window": WINDOWS[window],
        "lateness": None if window == "none" else "1 hour",
    }
    oracle = expected(rows, operator, WINDOWS[window])

    routed = Ran(spark, tmp_path, "routed", grouping={"type": "level"}, **changes)
    assert routed.last == oracle
    if window == "sliding":
        plain = Ran(spark, tmp_path, "plain", grouping={"type": "none"}, **changes)
        assert plain.last == oracle
        assert plain.types == routed.types


def test_late_rows_count_nowhere_and_alike(spark: SparkSession, tmp_path: Path) -> None:
    def trade(second: int, volume: int) -> dict[str, Any]:
        at = (START + timedelta(seconds=second)).isoformat()
        return {**records(1, 1)[0], "symbol": "S1", "volume": volume, "at": at}

    write(tmp_path / "in", "1.json", [trade(0, 1), trade(10, 2), trade(100, 4)])
    write(tmp_path / "in", "2.json", [trade(85, 8), trade(100, 16)])
    # By now the watermark is 12:01:30: of these, only the window of the third is open.
    write(tmp_path / "in", "3.json", [trade(5, 32), trade(75, 64), trade(99, 128)])
    changes = {
        "operator": OPERATORS["vwap"],
        "window": WINDOWS["tumbling"],
        "lateness": "10 s",
    }
    found = {}
    for grouping in ("shuffle", "none"):
        ran = Ran(spark, tmp_path, grouping, grouping={"type": grouping}, **changes)
        late = sum(
            part["numRowsDroppedByWatermark"]
            for done in ran.batches
            for part in done.progress["stateOperators"]
        )
        found[grouping] = [ran.last, late]

    assert found["shuffle"] == found["none"]
    totals, late = found["shuffle"]
    assert late == 2
    assert {(place[0] - START).total_seconds(): one["volume"] for place, one in totals.items()} == {
        0: 3,
        80: 8 + 128,
        100: 4 + 16,
    }


def test_top_keeps_the_first_hashtags_of_each_whole_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = records(11, 300)
    end = {**rows[0], "hashtags": ["end"], "at": (START + timedelta(hours=1)).isoformat()}
    write(tmp_path / "in", "1.json", rows[:150])
    write(tmp_path / "in", "2.json", [*rows[150:], end])
    ran = Ran(
        spark,
        tmp_path,
        "top",
        operator={**OPERATORS["hashtags"], "top": 2},
        window=WINDOWS["sliding"],
        lateness="5 minutes",
        merge={"partitions": 2, "output": "append"},
    )

    whole = expected(rows, "hashtags", WINDOWS["sliding"])
    order = sorted(whole, key=lambda place: (place[0], -whole[place]["posts"], place[2]))
    kept: Counter[Any] = Counter()
    best = {}
    for place in order:
        kept[place[0]] += 1
        if kept[place[0]] <= 2:
            best[place] = whole[place]
    assert ran.last == best
    assert len(ran.rows) == len(best)
