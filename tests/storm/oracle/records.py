"""The records of a world: skewed, late, reordered, repeated, some of them to be rejected."""

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.storm.oracle.world import World

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOPIC = "storm"
SCHEMA = (
    "text STRING, symbol STRING, price DECIMAL(18, 4), volume BIGINT, user STRING,"
    " tags ARRAY<STRING>, at TIMESTAMP"
)
_BATCH_SECONDS = 15
_REJECTED = {
    "not_utf8": None,
    "not_decoded": None,
    "no_value": None,
    "no_event_time": {"at": None},
}
_REJECTED_BY_OPERATOR: dict[str, dict[str, dict[str, Any]]] = {
    "word_count": {"null_key": {"text": None}},
    "vwap": {
        "null_key": {"symbol": None},
        "price_null": {"price": None},
        "volume_zero": {"volume": 0},
        "volume_negative": {"volume": -3},
    },
    "aggregate": {"null_key": {"symbol": None}},
    "hashtags": {"null_key": {"tags": None}, "user_null": {"user": None}},
    # Rows have no event time, and are written whatever their key is, but for a folder's name.
    "rows": {"partition_value_unusable": {"symbol": "\0k"}},
}


@dataclass(frozen=True)
class Record:
    """One record as it lies in Kafka, and why it must be rejected; "" if it must not."""

    value: bytes | None
    partition: int
    offset: int
    reason: str
    fields: dict[str, Any]

    @property
    def arrived(self) -> datetime:
        """Kafka's own timestamp."""
        return START + timedelta(seconds=self.offset)

    @property
    def at(self) -> datetime:
        """When it happened."""
        return datetime.fromisoformat(self.fields["at"])


def batches_of(world: World) -> list[list[Record]]:
    """The records, batch by batch; those of the last two close every window before.

    Two, because Spark writes those windows in the batch after: if a kill ends the query before it,
    the next start adds no batch without records. A batch of files is a file; one of a topic has so
    many records, whoever made them.
    """
    rng = random.Random(f"records {world.seed}")
    offsets = [0] * world.kafka_partitions
    made: list[list[Record]] = []
    for number in range(world.batches):
        batch: list[Record] = []
        for _ in range(world.rows):
            repeated = rng.choice(batch) if batch and rng.random() < 0.03 else None
            batch.append(_placed(repeated or _drawn(world, number, rng), world, offsets, rng))
        made.append(batch)
    closing = world.rows if world.source == "kafka" else 1
    made += (
        [_placed(_closing(world, rng), world, offsets, rng) for _ in range(closing)]
        for _ in range(2)
    )
    return made


def _placed(record: Record, world: World, offsets: list[int], rng: random.Random) -> Record:
    """The record at the next offset of a partition."""
    partition = rng.randrange(world.kafka_partitions)
    offset = offsets[partition]
    offsets[partition] += 1
    return Record(record.value, partition, offset, record.reason, record.fields)


def _drawn(world: World, batch: int, rng: random.Random) -> Record:
    fields = _fields(world, batch, rng)
    if rng.random() >= 0.04:
        return _encoded(fields)
    reasons = {**_REJECTED, **_REJECTED_BY_OPERATOR[world.operator]}
    if not world.merges:
        del reasons["no_event_time"]
    reason = rng.choice(tuple(reasons))
    broken = {
        "not_utf8": b'\xff\xfe{"number": %d}' % rng.randrange(10**9),
        "not_decoded": b'{"number": %d, "text": ' % rng.randrange(10**9),
        "no_value": None,
    }
    if reason in broken:
        return Record(broken[reason], 0, 0, reason, {})
    return _encoded({**fields, **(reasons[reason] or {})}, reason)


def _closing(world: World, rng: random.Random) -> Record:
    at = START + timedelta(days=1)
    return _encoded({**_fields(world, world.batches, rng), "at": _iso(at)})


def _encoded(fields: dict[str, Any], reason: str = "") -> Record:
    return Record(json.dumps(fields, ensure_ascii=False).encode(), 0, 0, reason, fields)


def _fields(world: World, batch: int, rng: random.Random) -> dict[str, Any]:
    keys = [_key(world, batch, rng) for _ in range(rng.randint(1, 4))]
    return {
        "text": " ".join([*keys, rng.choice(("—", "It's", "Σίσυφος", "ÉTÉ"))]),
        "symbol": keys[0],
        "price": f"{rng.randint(-5_000, 10**7) / 10**4:.4f}",
        "volume": rng.randint(1, 10**6),
        "user": f"u{rng.randrange(300)}",
        "tags": [*keys, rng.choice(("", None, keys[0]))],
        "at": _iso(_event_time(batch, rng)),
    }


def _key(world: World, batch: int, rng: random.Random) -> str:
    if world.keys == "single":
        return "only"
    if world.keys == "distinct":
        return f"k{rng.randrange(10**12)}"
    if world.keys == "moving_hot" and rng.random() < 0.6:
        return f"hot{batch}"
    return f"k{min(int(rng.paretovariate(0.9)), 200)}"


def _event_time(batch: int, rng: random.Random) -> datetime:
    """Mostly within the batch's own stretch; some much earlier, which may be too late."""
    back = rng.uniform(0, 120) if rng.random() < 0.06 else 0
    seconds = batch * _BATCH_SECONDS + rng.uniform(0, 2 * _BATCH_SECONDS) - back
    return START + timedelta(milliseconds=int(seconds * 1000))


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
