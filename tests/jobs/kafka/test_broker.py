import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer

from tests.support.running.processes import default_signals
from unskew.config.errors import ExternalError
from unskew.jobs.kafka.admin import NoBrokerError, TopicError, admin
from unskew.jobs.kafka.broker import Broker, Identity
from unskew.jobs.local.child_processes import find_free_ports

pytestmark = pytest.mark.e2e

STOP_SECONDS = 60.0  # how long it may take on a machine that is busy


def wait_gone(pids: list[int], seconds: float = STOP_SECONDS) -> list[int]:
    """The processes still there after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = [pid for pid in pids if psutil.pid_exists(pid)]
        if not left:
            return []
        time.sleep(0.1)
    return left


@dataclass
class Running:
    """`unskew broker` as a user runs it: its printed address and all it started."""

    process: "subprocess.Popen[str]"
    address: str
    pids: list[int]


@contextmanager
def command(temporary: Path, *arguments: str) -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-m", "unskew", "broker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,  # noqa: PLW1509 - sets signals only
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        children = psutil.Process(process.pid).children(recursive=True)
        yield Running(process, address, [child.pid for child in children])
    finally:
        process.terminate()
        process.communicate(timeout=STOP_SECONDS)


def broker_folders(temporary: Path) -> list[Path]:
    return list(temporary.glob("unskew-broker-*"))


def test_topics_are_made_with_their_settings_and_twice_is_harmless(broker: Broker) -> None:
    broker.create_topics(["settings"], 3, cleanup_policy="compact")
    broker.create_topics(["settings"], 3)
    with admin(broker.address) as client:
        assert client.count_partitions()["settings"] == 3


def test_the_admin_says_what_it_made_and_why_not(broker: Broker) -> None:
    with admin(broker.address) as client:
        assert client.create("of-the-admin", {"cleanup.policy": "compact"}, partitions=2)
        assert not client.create("of-the-admin", {})
        with pytest.raises(TopicError, match=r"(?i)replication"):
            client.create("three-copies", {}, replicas=3)
        assert client.count_partitions()["of-the-admin"] == 2
        assert not client.allows_topic_creation()


def test_brokers_that_do_not_answer_are_an_error_in_time() -> None:
    begin = time.monotonic()
    with pytest.raises(NoBrokerError), admin("127.0.0.1:1", seconds=1):
        pass
    assert time.monotonic() - begin < 30


def test_records_go_in_and_come_out(broker: Broker) -> None:
    broker.create_topics(["echo"])
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(100):
        producer.produce("echo", str(number).encode(), key=b"k")
    assert producer.flush(10) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "test",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["echo"])
    read = [message.value() for message in consumer.consume(100, timeout=20)]
    consumer.close()
    assert read == [str(number).encode() for number in range(100)]


def test_it_is_small_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Broker() as broker:
        processes = psutil.Process(broker.child._process.pid)
        everyone = [processes, *processes.children(recursive=True)]
        assert sum(process.memory_info().rss for process in everyone) < 300e6
        assert broker_folders(tmp_path)
    assert wait_gone([process.pid for process in everyone]) == []
    assert broker_folders(tmp_path) == []


@pytest.mark.slow
def test_data_in_a_named_folder_is_there_after_a_restart(tmp_path: Path) -> None:
    with Broker(data=tmp_path / "kafka") as first:
        first.create_topics(["kept"])
    with Broker(data=tmp_path / "kafka") as second, admin(second.address) as client:
        assert "kept" in client.count_partitions()


# SIGINT and SIGHUP take the way of SIGTERM, which ends the command of the last test.
@pytest.mark.parametrize(
    "how",
    [
        signal.SIGKILL,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        ),
    ],
)
def test_it_ends_with_its_parent_however_that_ends(how: signal.Signals, tmp_path: Path) -> None:
    with command(tmp_path) as running:
        assert running.address.startswith("127.0.0.1:")
        assert len(running.pids) == 2
        os.kill(running.process.pid, how)
        running.process.communicate(timeout=STOP_SECONDS)
        assert wait_gone(running.pids) == []
    assert running.process.returncode == (-9 if how == signal.SIGKILL else 130)
    assert broker_folders(tmp_path) == []


@pytest.mark.slow
def test_kafka_dies_when_even_the_guard_is_killed(tmp_path: Path) -> None:
    with command(tmp_path) as running:
        os.kill(running.pids[0], signal.SIGKILL)
        assert wait_gone(running.pids) == []
        _, errors = running.process.communicate(timeout=STOP_SECONDS)
    assert running.process.returncode == 1
    assert errors.startswith("broker: ended by itself")
    assert "Traceback" not in errors
    assert broker_folders(tmp_path) == []


def test_a_port_in_use_is_named(broker: Broker) -> None:
    with pytest.raises(ExternalError, match=f"port {broker.port} is in use"):
        Broker(port=broker.port)


def test_an_unusable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExternalError, match=f"broker: {tmp_path}/file"):
        Broker(data=tmp_path / "file")


@pytest.mark.slow
def test_why_it_does_not_start_is_told(tmp_path: Path) -> None:
    (tmp_path / "pem").write_text("no certificate")
    with pytest.raises(ExternalError, match=r"ended with 1(?s:.*)No matching PRIVATE KEY"):
        Broker(identity=Identity(tmp_path / "pem", tmp_path / "pem"))


@pytest.mark.slow
def test_a_port_of_ones_choice_and_topics_from_the_command_line(tmp_path: Path) -> None:
    (port,) = find_free_ports(1)
    with command(tmp_path, "--port", str(port), "--topic", "lines:4") as running:
        assert running.address == f"127.0.0.1:{port}"
        with admin(running.address) as client:
            assert client.count_partitions()["lines"] == 4
    assert wait_gone(running.pids) == []
