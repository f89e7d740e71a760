"""What a world's job must give, in plain Python: totals or rows, and which records are rejected.

Nothing here uses the code of the jobs. Of a record that comes late, Spark's rule decides: a window
is lost to it if the window's end is not after the watermark of the batch before. A batch's
watermark is the latest event time of all batches before it, less the lateness. Spark does not look
at a batch again that a table has already, so such a batch moves no watermark.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from datasketches import hll_sketch, hll_union, tgt_hll_type

from tests.storm.oracle.records import Record
from tests.storm.oracle.world import SECONDS, World
from tests.storm.oracle.xxhash import xxhash64

Bounds = tuple[int, ...]
Totals = dict[tuple[Any, ...], dict[str, Any]]
DeadLetters = Counter[tuple[int, int, str]]
"""Rejected records by partition, offset and reason."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Outcome:
    """Totals by window and key, or how often there is each row; and the dead letters."""

    totals: Totals = field(default_factory=dict)
    dead_letters: DeadLetters = field(default_factory=Counter)


def millis(at: datetime) -> int:
    """A time as milliseconds since 1970."""
    seconds = at - _EPOCH
    return seconds.days * 86_400_000 + seconds.seconds * 1000 + seconds.microseconds // 1000


def expected(world: World, batches: list[list[Record]], skipped: Collection[int] = ()) -> Outcome:
    """The whole outcome of a world whose batches are exactly these.

    skipped: the numbers of those that a table had when they were to run again.
    """
    outcome = Outcome()
    if not world.merges:
        return _expected_rows(batches)
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    newest, before, late = 0, 0, 0
    for number, batch in enumerate(batches):
        # The watermark that drops late rows lags one batch behind the one that closes windows.
        late, before = before, max(0, newest - world.lateness_seconds * 1000)
        for record in batch:
            if record.reason:
                outcome.dead_letters[record.partition, record.offset, record.reason] += 1
                continue
            if number not in skipped:
                newest = max(newest, millis(record.at))
            for result_key in _windows(world, record, late):
                for key in keys_of(record, world.operator):
                    groups[*result_key, key].append(record)
    closed = max(0, newest - world.lateness_seconds * 1000)
    for result_key, members in groups.items():
        if world.output == "update" or result_key[1] <= closed:
            outcome.totals[result_key] = TOTALS[world.operator](members)
    return outcome


def _expected_rows(batches: list[list[Record]]) -> Outcome:
    wanted = [record for batch in batches for record in batch if is_wanted(record)]
    return Outcome(
        count_rows(row_of(record) for record in wanted if not record.reason),
        Counter((each.partition, each.offset, each.reason) for each in wanted if each.reason),
    )


def is_wanted(record: Record) -> bool:
    """Does the job's `where` hold, or was nothing decoded? What it leaves out is no dead letter."""
    return not record.fields or bool(record.fields["volume"] % 7)


def row_of(record: Record) -> dict[str, Any]:
    """The row of a table that the record is, with the columns that the table is partitioned by."""
    fields = record.fields
    return {
        "symbol": fields["symbol"],
        "price": Decimal(fields["price"]),
        "volume": fields["volume"],
        "at": millis(record.at),
        "kafka_partition": record.partition,
        "kafka_offset": record.offset,
        "kind": fields["symbol"][:2],
        "day": fields["at"][:10],
    }


def count_rows(rows: Iterable[dict[str, Any]]) -> Totals:
    """How often there is each row."""
    counted = Counter(tuple(row[name] for name in sorted(row)) for row in rows)
    return {row: {"rows": count} for row, count in counted.items()}


def _windows(world: World, record: Record, late: int) -> Iterator[Bounds]:
    """The windows, in milliseconds, that a record still counts in."""
    if not world.windowed:
        yield ()
        return
    duration, slide = (1000 * seconds for seconds in SECONDS[world.window])
    at = millis(record.at)
    start = at - at % slide
    while start > at - duration:
        if start + duration > late:
            yield start, start + duration
        start -= slide


def keys_of(record: Record, operator: str) -> Iterable[str]:
    """The keys that a record counts for, one for each time."""
    if operator == "word_count":
        return re.findall(r"(?:[^\W_]|')+", record.fields["text"].lower())
    if operator == "hashtags":
        return sorted({tag for tag in record.fields["tags"] if tag})
    return [record.fields["symbol"]]


def _count(records: list[Record]) -> dict[str, Any]:
    return {"count": len(records)}


def _vwap(records: list[Record]) -> dict[str, Any]:
    trades = [
        (record.at, Decimal(record.fields["price"]), record.fields["volume"]) for record in records
    ]
    with localcontext(prec=100, rounding=ROUND_HALF_UP):
        volume = sum(traded for _, _, traded in trades)
        amount = sum((price * traded for _, price, traded in trades), Decimal(0))
        average = (amount / volume).quantize(Decimal("0.000001"))
    prices = [price for _, price, _ in trades]
    return {
        "vwap": average,
        "volume": Decimal(volume),
        "trades": len(trades),
        "high": max(prices),
        "low": min(prices),
        "open": min(trades)[1],
        "close": max(trades)[1],
    }


def _hashtags(records: list[Record]) -> dict[str, Any]:
    times = [millis(record.at) for record in records]
    return {
        "posts": len(records),
        "users": estimated_users({record.fields["user"] for record in records}),
        "first_seen": min(times),
        "last_seen": max(times),
    }


def _aggregate(records: list[Record]) -> dict[str, Any]:
    first = min((record.at, record.fields["user"]) for record in records)
    return {
        "trades": len(records),
        "volume": sum(record.fields["volume"] for record in records),
        "lowest": min(Decimal(record.fields["price"]) for record in records),
        "first_user": first[1],
        "users": estimated_users({record.fields["user"] for record in records}),
    }


def estimated_users(users: Iterable[str]) -> int:
    """What a union of HLL sketches of 2^12 registers says of them: the same whatever the order."""
    sketch = hll_sketch(12, tgt_hll_type.HLL_8)
    for user in users:
        sketch.update(xxhash64(user.encode()))
    union = hll_union(12)
    union.update(sketch)
    union.update(sketch)
    return round(float(union.get_result(tgt_hll_type.HLL_8).get_estimate()))


TOTALS: dict[str, Callable[[list[Record]], dict[str, Any]]] = {
    "word_count": _count,
    "vwap": _vwap,
    "hashtags": _hashtags,
    "aggregate": _aggregate,
}
