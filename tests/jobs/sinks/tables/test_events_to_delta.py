"""The shipped job `events_to_delta`, as its page says: the generator's trades in Delta, once."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.generated_streams import generated
from tests.support.running.topics import topic_records
from unskew.jobs.__main__ import main
from unskew.jobs.kafka.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

RECORDS, BATCH = 6000, 2500
PARTITIONS = 4
Row = tuple[Any, ...]
"""Symbol, price, volume, time and day."""


def test_the_generators_trades_are_in_the_table_once(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Midnight is in the middle of the stream, so that the table has two days.
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = (midnight - timedelta(seconds=15)).strftime("%Y-%m-%dT%H:%M:%SZ")
    words = ["trades", f"--records={RECORDS}", "--rate=200", "--keys=30", "--rejected=0.05"]
    words += ["--fast", f"--start={start}"]
    lines = generated(tmp_path / "trades", *words)
    broker.create_topics(["trades"], partitions=PARTITIONS)
    assert main(["generate", *words, f"--bootstrap-servers={broker.address}"]) == 0
    for name, value in {
        "KAFKA_BOOTSTRAP_SERVERS": broker.address,
        "UNSKEW_RESULTS": str(tmp_path / "results"),
        "UNSKEW_CHECKPOINTS": str(tmp_path / "checkpoints"),
        "SPARK_MASTER": "local[2]",
    }.items():
        monkeypatch.setenv(name, value)

    run = [sys.executable, "-m", "unskew", "run", "events_to_delta"]
    changes = {"trigger": "{type: available_now}", "source.records_per_batch": BATCH}
    options = [word for path, value in changes.items() for word in ("--set", f"{path}={value}")]
    done = subprocess.run([*run, *options], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-4000:]
    wanted = [row for line in lines if (row := read_trade(line)) is not None]
    assert 50 < RECORDS - len(wanted) < 100
    rows = list(rows_of(tmp_path / "results" / "events"))
    assert Counter(row for _, row in rows) == Counter(wanted)
    assert len({day for _, (*_, day) in rows}) == 3  # two days, and no time at all
    # Each row says where its record is.
    records = topic_records(broker, "trades", PARTITIONS)
    read = {(each.partition(), each.offset()): read_trade(each.value()) for each in records}
    assert dict(rows) == {where: row for where, row in read.items() if row is not None}
    files = (tmp_path / "results" / "events-dead-letters").rglob("*.json")
    dead = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {each["reason"] for each in dead} == {"not_decoded"}
    assert len(dead) == RECORDS - len(wanted)


def read_trade(line: bytes) -> Row | None:
    """A row of the table by plain Python; None for what is no JSON."""
    try:
        trade = json.loads(line, parse_float=Decimal)
    except ValueError:
        return None
    at = datetime.fromisoformat(trade["traded_at"]) if "traded_at" in trade else None
    day = at.date().isoformat() if at else None
    return trade["symbol"], trade.get("price"), trade["volume"], at, day


def rows_of(table: Path) -> Iterator[tuple[tuple[int, int], Row]]:
    """Where each row's record is, and the row; by the log of a table to which rows were added."""
    for version in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, version.read_text().splitlines()):
            assert "remove" not in action
            if "add" in action:
                yield from _rows_of_file(table, action["add"])


def _rows_of_file(table: Path, added: dict[str, Any]) -> Iterator[tuple[tuple[int, int], Row]]:
    path = table / unquote(added["path"])
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
    assert file.schema.field("price").type == pa.decimal128(18, 4)
    symbol, day = (added["partitionValues"][name] for name in ("symbol", "day"))
    for row in file.to_pylist():
        where = row["kafka_partition"], row["kafka_offset"]
        at = row["traded_at"] and row["traded_at"].replace(tzinfo=UTC)
        yield where, (symbol, row["price"], row["volume"], at, day)
