"""`unskew generate` into a real broker: rate, partitions, totals, and what goes wrong there."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.generated_streams import counted, read_oracle
from tests.support.running.processes import default_signals
from tests.support.running.topics import topic_records
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.local.child_processes import find_free_ports

pytestmark = pytest.mark.e2e


@contextmanager
def generating(*words: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "unskew", "generate", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,  # noqa: PLW1509 - sets signals only
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finished(*words: str, **environment: str) -> tuple[int, str, str]:
    with generating(*words, **environment) as process:
        printed, errors = process.communicate(timeout=60)
        return process.returncode, printed, errors


def test_what_is_in_the_topic_is_what_the_oracle_says(broker: Broker, tmp_path: Path) -> None:
    broker.create_topics(["generated"], partitions=3)
    began = time.time()
    code, printed, errors = finished(
        *("lines", "--topic=generated", "--rate=2000", "--duration=2s", "--rejected=0.01"),
        *(f"--oracle={tmp_path / 'o'}", "--window=1s", "--late=0.1", "--late-by=3s", "--fast"),
        KAFKA_BOOTSTRAP_SERVERS=broker.address,
    )
    assert (code, errors) == (0, "")
    assert printed.startswith(f"lines: 4,000 records in generated on {broker.address}, ")

    records = topic_records(broker, "generated", 3)
    head, totals = read_oracle(tmp_path / "o")
    assert len(records) == head["records"] == 4000
    times = [datetime.fromtimestamp(each.timestamp()[1] / 1000, UTC) for each in records]
    assert min(times).timestamp() == pytest.approx(began, abs=60)
    rejected, expected = counted(
        "lines", [(each.value(), at) for each, at in zip(records, times, strict=True)], 1
    )
    assert totals == expected
    assert head["rejected"] == dict(rejected)
    loads = [sum(each.partition() == number for each in records) for number in range(3)]
    assert max(loads) - min(loads) <= 64


@pytest.mark.parametrize("rate", [20_000, pytest.param(50, marks=pytest.mark.slow)])
def test_the_rate_is_held(rate: int, broker: Broker) -> None:
    # By the broker's clock: when each record arrived.
    broker.create_topics([f"rate-{rate}"], message_timestamp_type="LogAppendTime")
    code, printed, errors = finished(
        *("lines", f"--topic=rate-{rate}", f"--rate={rate}", "--duration=4s"),
        f"--bootstrap-servers={broker.address}",
    )
    assert (code, errors) == (0, "")
    said = re.fullmatch(
        rf"lines: ([\d,]+) records in .*, (\d\.\d) s, ([\d,]+) records/s \({rate:,} asked\)\n",
        printed,
    )
    assert said is not None, printed
    assert int(said[1].replace(",", "")) == 4 * rate
    # A busy machine makes it slower, and then it catches up; faster it is never.
    # How near it comes to the rate is measured by `python -m benchmarks.generate`.
    assert rate / 2 < int(said[3].replace(",", "")) < 1.02 * rate
    arrived = [each.timestamp()[1] for each in topic_records(broker, f"rate-{rate}", 1)]
    assert len(arrived) == 4 * rate
    began, ended = min(arrived), max(arrived)
    assert ended - began > 3000
    # About half of the records in half of the time, and not all at its begin or end.
    early = sum(2 * (each - began) < ended - began for each in arrived)
    assert early / len(arrived) == pytest.approx(0.5, abs=0.3)


@pytest.mark.parametrize(
    ("how", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 0, marks=pytest.mark.slow)],
)
def test_a_signal_ends_it_and_what_was_written_is_told(
    how: signal.Signals, code: int, broker: Broker, tmp_path: Path
) -> None:
    topic = f"signal-{int(how)}"
    broker.create_topics([topic])
    with generating(
        *("lines", f"--topic={topic}", "--rate=3000", f"--bootstrap-servers={broker.address}"),
        f"--oracle={tmp_path / 'o'}",
    ) as process:
        deadline = time.monotonic() + 30
        while not topic_records(broker, topic, 1):
            assert time.monotonic() < deadline
        process.send_signal(how)
        printed, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (code, "")
    there = topic_records(broker, topic, 1)
    assert printed.startswith(f"lines: {len(there):,} records in {topic}")
    head, totals = read_oracle(tmp_path / "o")
    assert head["records"] == len(there)
    at = datetime.now(UTC)
    assert totals == counted("lines", [(each.value(), at) for each in there])[1]


HERE = "--bootstrap-servers={here}"
CANNOT: list[tuple[tuple[str, ...], str]] = [
    (
        (HERE, "--topic=trades-theer"),
        'trades-theer on {here}: no such topic; did you mean "trades-there"?',
    ),
    (
        (HERE, "--topic=trades-there", "--partitions=3"),
        "trades-there on {here}: has 2 partitions, --partitions asks for 3;",
    ),
    ((HERE, "--kafka=acks=some"), "--kafka: Invalid value for configuration property"),
    (("--bootstrap-servers={closed}",), "{closed}: no broker answers within 5 s"),
]


@pytest.mark.parametrize(
    ("words", "problem"),
    [CANNOT[0], *(pytest.param(*case, marks=pytest.mark.slow) for case in CANNOT[1:])],
)
def test_what_the_broker_cannot_give_is_one_line(
    words: tuple[str, ...], problem: str, broker: Broker, tmp_path: Path
) -> None:
    (tmp_path / "o").write_text("of an earlier run")
    broker.create_topics(["trades-there"], partitions=2)
    (port,) = find_free_ports(1)
    addresses = {"here": broker.address, "closed": f"127.0.0.1:{port}"}
    code, printed, errors = finished(
        *("trades", "--records=5", f"--oracle={tmp_path / 'o'}"),
        *(word.format(**addresses) for word in words),
    )
    assert (code, printed) == (1, "")
    assert errors.startswith(f"generate: {problem.format(**addresses)}")
    assert errors.count("\n") == 1
    assert (tmp_path / "o").read_text() == "of an earlier run"


@pytest.mark.slow
def test_a_broker_that_goes_away_is_one_line(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topics(["gone"])
        with generating(
            *("lines", "--topic=gone", "--rate=2000", f"--bootstrap-servers={broker.address}"),
            *("--kafka=message.timeout.ms=3000", f"--oracle={tmp_path / 'o'}"),
        ) as process:
            while not topic_records(broker, "gone", 1):
                time.sleep(0.1)
            broker.stop()
            printed, errors = process.communicate(timeout=60)
    assert (process.returncode, printed) == (1, "")
    assert re.fullmatch(r"generate: gone on .*; [\d,]+ of [\d,]+ records are there\n", errors)
    assert not (tmp_path / "o").exists()
