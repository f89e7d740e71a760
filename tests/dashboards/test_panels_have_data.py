"""Every query of every panel, asked of a real Prometheus that scrapes a real job."""

import json
import math
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.displays.dashboards import (
    UIDS,
    Query,
    annotations,
    page,
    queries,
    substituted,
    variable,
)
from tests.support.running.job_process import job_words, make_topics, produce, running
from tests.support.running.processes import end_process
from tests.support.running.programs import find_program
from unskew.jobs.__main__ import main
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.local.child_processes import find_free_ports

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]

SCRAPE_SECONDS = 1
STEP_SECONDS = 1
WAIT_SECONDS = 90.0
PARTITIONS = 11  # more than ten, so that their order as numbers is not that as text
BROKEN = Query("broken", "unskew_no_such_metric", "", instant=False)


class Prometheus:
    """A Prometheus that scrapes one address, asked as Grafana asks it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._started = time.time()

    def ask(self, path: str, **parameters: object) -> Any:
        """The data of an answer of its API."""
        where = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with urllib.request.urlopen(where, timeout=20) as answer:  # noqa: S310 - ours
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                pytest.fail(f"{parameters}: {error.read().decode()}")

    def ready(self) -> bool:
        """Does it answer?"""
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False

    def series(self, query: Query, job: str, instance: str) -> list[Any]:
        """What a query finds, with the variables as Grafana would have them."""
        now = time.time()
        values = {
            # As where no target has the label.
            "cluster": "",
            "job": job,
            "instance": instance,
            # Grafana: the greater of the step and a scrape together, and four scrapes.
            "__rate_interval": f"{max(STEP_SECONDS + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)}s",
            "__range": f"{math.ceil(now - self._started)}s",
        }
        expression = substituted(query.expression, values)
        if query.instant:
            return list(self.ask("query", query=expression, time=now)["result"])
        window = {"start": self._started, "end": now, "step": STEP_SECONDS}
        return list(self.ask("query_range", query=expression, **window)["result"])

    def values(self, query: Query, job: str, instance: str) -> list[float]:
        """All numbers that a query shows."""
        rows = self.series(query, job, instance)
        pairs = [pair for row in rows for pair in row.get("values", [row.get("value")])]
        return [number for number in (float(value) for _, value in pairs) if not math.isnan(number)]


@contextmanager
def prometheus(folder: Path, address: str) -> Iterator[Prometheus]:
    """Prometheus over an address; whatever happens, it ends."""
    program = find_program("prometheus")
    (port,) = find_free_ports(1)
    scrape = {"job_name": "unskew", "static_configs": [{"targets": [address]}]}
    settings = {
        "global": {"scrape_interval": f"{SCRAPE_SECONDS}s"},
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [
                str(program),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=log,
        )
    try:
        prometheus = Prometheus(f"http://127.0.0.1:{port}")
        _wait(prometheus.ready, folder / "prometheus.log")
        yield prometheus
    finally:
        assert end_process(process, 30), "Prometheus did not end"


def _wait(done: Any, log: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def measured(query: Query) -> Query:
    """The query without the 0 that it shows where there is nothing."""
    return replace(query, expression=query.expression.replace(" or vector(0)", ""))


def test_every_query_of_every_panel_has_data(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, "shown")
    (port,) = find_free_ports(1)
    address = f"127.0.0.1:{port}"
    words = job_words(
        broker.address,
        tmp_path,
        "shown",
        name="shown",
        partitions=PARTITIONS,
        metrics__port=port,
        **{"spark__spark.sql.streaming.stateStore.minDeltasForSnapshot": 1},
    )
    with prometheus(tmp_path, address) as asked, running(words, tmp_path / "log") as job:
        records = 0
        for seed in range(3):
            records += produce(broker, "shown", 400, seed).total()
            job.wait_for_records(records)
            time.sleep(2 * SCRAPE_SECONDS)
        answers = {
            query.where: (query, asked.values(measured(query), "shown", address))
            for uid in UIDS
            for query in queries(page(uid))
        }
        empty = [query for query, values in answers.values() if not values]
        # This job writes results to Kafka, and has one grouping: tables are below, figures of
        # `auto` in tests/jobs/observe.
        others = ("_written_", "_grouping_taken", "_expected_batch_", "_grouping_change")
        assert [q for q in empty if not any(name in q.expression for name in others)] == []
        assert len(empty) == 10
        assert asked.values(BROKEN, "shown", address) == []
        _partitions_are_in_order(asked, address)
        _starts_are_marked(asked, address)
        _variables_find_the_job(asked, address)


def test_every_query_of_tables_has_data(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topics(["traded"], partitions=2)
    (port,) = find_free_ports(1)
    address = f"127.0.0.1:{port}"
    environment = {
        "KAFKA_BOOTSTRAP_SERVERS": broker.address,
        "UNSKEW_RESULTS": str(tmp_path / "results"),
        "UNSKEW_CHECKPOINTS": str(tmp_path),
        "SPARK_MASTER": "local[2]",
        "METRICS_PORT": str(port),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    changes = ("source.subscribe=[traded]", "trigger.interval=1 s", f"partitions={PARTITIONS}")
    words = ["run", "events_to_delta", *(word for each in changes for word in ("--set", each))]
    made = ["generate", "trades", "--topic=traded", f"--bootstrap-servers={broker.address}"]
    with prometheus(tmp_path, address) as asked, running(words, tmp_path / "log") as job:
        for number in (1, 2):
            assert main([*made, "--records=2000", "--fast", f"--seed={number}"]) == 0
            job.wait_for_records(2000 * number)
            time.sleep(2 * SCRAPE_SECONDS)
        tables = [
            query for uid in UIDS for query in queries(page(uid)) if "_written_" in query.expression
        ]
        shown = [asked.series(query, "events_to_delta", address) for query in tables]
    files, file_bytes, writer_bytes, writer_files = (last_values(rows) for rows in shown)
    added = added_by_last_batch(tmp_path / "results" / "events")
    assert files == [len(added)]
    assert sum(writer_files) == len(added) > PARTITIONS
    assert sum(writer_bytes) == sum(added)
    assert file_bytes == pytest.approx([sum(added) / len(added)])
    assert len(writer_files) == len(writer_bytes) == PARTITIONS


def last_values(rows: list[Any]) -> list[float]:
    """The newest number of each row."""
    return [float((row.get("values") or [row["value"]])[-1][1]) for row in rows]


def added_by_last_batch(table: Path) -> list[int]:
    """The bytes of the files that the newest version of a Delta table has more."""
    newest = max((table / "_delta_log").glob("*.json"))
    actions = map(json.loads, newest.read_text().splitlines())
    return [action["add"]["size"] for action in actions if "add" in action]


def _partitions_are_in_order(asked: Prometheus, address: str) -> None:
    """A heatmap draws its rows as Prometheus sends them."""
    rows = [
        query for query in queries(page("unskew-partitions")) if query.legend == "{{partition}}"
    ]
    assert len(rows) == 4
    for query in rows:
        rows = asked.series(query, "shown", address)
        order = [int(row["metric"]["partition"]) for row in rows]
        assert order == list(range(PARTITIONS)), query.where


def _starts_are_marked(asked: Prometheus, address: str) -> None:
    """The value is the time of the start in milliseconds, and no trouble is reported."""
    for uid in UIDS:
        starts, trouble = annotations(page(uid))
        (start,) = set(asked.values(starts, "shown", address))
        assert 0 < time.time() - start / 1000 < WAIT_SECONDS * 2
        assert asked.values(trouble, "shown", address) == []


def _variables_find_the_job(asked: Prometheus, address: str) -> None:
    for name, expected in (("job", "shown"), ("instance", address)):
        asks = variable(page(UIDS[0]), name)["definition"]
        selector, _, label = asks.removeprefix("label_values(").removesuffix(")").rpartition(", ")
        selector = substituted(selector, {"cluster": "", "job": "shown"})
        assert asked.ask(f"label/{label}/values", **{"match[]": selector}) == [expected]
