"""A job whose page is attacked: its batches take as long as without."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.running.in_process import write_lines
from tests.support.running.job_process import Running, running

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

# Asks without a pause, sends a byte now and then, and sends headers without an end; how many
# answers it got. At the lowest priority: on another machine it would take no time of the job's.
ATTACK = """
import os, socket, sys, threading, time
os.nice(19)
address, answers = ("127.0.0.1", int(sys.argv[1])), []
head = b"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n"
def again(attack):
    def run():
        while True:
            try:
                with socket.create_connection(address, timeout=5) as client:
                    attack(client)
            except OSError:
                pass
    threading.Thread(target=run, daemon=True).start()
def flood(client):
    client.sendall(head + b"\\r\\n")
    while client.recv(65536):
        pass
    answers.append(1)
def trickle(client):
    for byte in head * 100:
        client.sendall(bytes([byte]))
        time.sleep(0.25)
def swell(client):
    client.sendall(head)
    while True:
        client.sendall(b"X-Large: " + b"x" * 60_000 + b"\\r\\n")
for attack in [flood] * 32 + [trickle] * 64 + [swell] * 16:
    again(attack)
input()
print(len(answers), flush=True)
"""
FILES, RECORDS, ROUNDS, SECONDS = 4000, 200, 4, 12.0


@contextmanager
def attacked(port: str, answers: list[int]) -> Iterator[None]:
    """Attack the port; the number of answers that the attack got is added."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", ATTACK, port], **pipes) as attack:
        try:
            yield
            answers.append(int(attack.communicate("\n", timeout=60)[0]))
        finally:
            attack.kill()


def read_times(job: Running) -> list[float]:
    """How long each batch took."""
    return [event["seconds"] for event in job.events() if event["event"] == "batch"]


def take_times(job: Running) -> list[float]:
    """How long the batches take that begin from now on, for some seconds."""
    before = len(read_times(job)) + 1
    time.sleep(SECONDS)
    return read_times(job)[before:]


def test_batches_take_as_long_as_without_an_attack_on_the_page(tmp_path: Path) -> None:
    rows = [{"text": f"w{word % 7} w{word}"} for word in range(RECORDS)]
    write_lines(tmp_path / "in", "0.json", rows)
    for number in range(1, FILES):
        (tmp_path / "in" / f"{number}.json").hardlink_to(tmp_path / "in" / "0.json")
    settings = {
        "source": f"{{type: files, path: {tmp_path}/in, files_per_batch: 1}}",
        "decode": "{type: json, schema: text STRING}",
        "operator": "{type: word_count, text: text}",
        "event_time": "timestamp '2026-01-01'",
        "window": "{type: none}",
        "lateness": "null",
        "partitions": 2,
        "merge.partitions": 1,
        "trigger": "{type: interval, interval: 0 s}",
        "sinks": "[{type: memory, table: totals}]",
        "dead_letters": f"{{type: files, path: {tmp_path}/dead}}",
        "checkpoint": tmp_path / "checkpoint",
        "metrics.port": "auto",
        "spark.spark.master": "local[2]",
    }
    words = [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]
    alone, beside, answers = list[float](), list[float](), list[int]()
    with running(["run", "word_count", *words], tmp_path / "log") as job:
        port = job.url.rpartition(":")[2].partition("/")[0]
        job.wait(lambda: len(read_times(job)) > 20)
        for _ in range(ROUNDS):
            alone += take_times(job)
            with attacked(port, answers):
                beside += take_times(job)
    ratio = statistics.median(beside) / statistics.median(alone)
    figures = (
        f"{len(alone)} batches of {statistics.median(alone):.3f} s, {len(beside)} of"
        f" {statistics.median(beside):.3f} s attacked ({sum(answers) / ROUNDS / SECONDS:.0f}"
        f" answers a second): ratio {ratio:.3f}"
    )
    print(figures)
    assert min(len(alone), len(beside)) >= 20, figures
    assert sum(answers) > 100, figures
    assert ratio < 1.25, figures
