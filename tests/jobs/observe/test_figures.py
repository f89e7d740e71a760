"""A row in the table of figures is enough for every display to show a figure."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from prometheus_client import generate_latest

from tests.support.batches import done
from tests.support.checkpoints import REPORTS_OF_VERSION_3
from tests.support.displays.live_page import job
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.batches.batch_stats import BatchStats
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.figure import PARTITION, Figure
from unskew.jobs.observe.figures import FIGURES
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.inspection import inspect
from unskew.jobs.observe.inspection_output import print_tables
from unskew.jobs.observe.page.page import LivePage
from unskew.jobs.observe.terminal import Line, Log


def _pauses(stats: BatchStats | None) -> np.ndarray | None:
    return None if stats is None else stats.numbers["keys"] * 2


TABLE = (
    *FIGURES,
    Figure(
        "pauses",
        "gauge",
        "Pauses of all partitions.",
        lambda batch: None if batch.stats is None else int(_pauses(batch.stats).sum()),
        page="memory.pauses",
        log="pauses",
        line="{} pauses",
        inspect="pauses",
        column=("pauses", "{:,}"),
    ),
    Figure(
        "partition_pauses",
        "counter",
        "Pauses of a partition.",
        lambda batch: _pauses(batch.stats),
        PARTITION,
        page="partitions.pauses",
        inspect="pauses",
        column=("paused", "{:,}"),
    ),
)


def test_prometheus_has_it() -> None:
    board = Board("q", Health(10.0), figures=TABLE)
    board.on_batch_done(done(0))
    board.on_batch_done(done(1))
    text = generate_latest(board.make_registry()).decode()
    assert "# HELP unskew_partition_pauses_total Pauses of a partition." in text
    assert 'unskew_partition_pauses_total{partition="0",query="q"} 12.0' in text
    assert 'unskew_pauses{query="q"} 8.0' in text


def test_the_live_page_has_it() -> None:
    page = LivePage(job(), Health(10.0), figures=TABLE)
    page.on_batch_done(done(0))
    (entry,) = json.loads(page.data())["batches"]
    assert entry["memory"] == {"pauses": 8}
    assert entry["partitions"]["pauses"] == [6, 2]


def test_the_terminal_and_the_log_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown, logged = io.StringIO(), io.StringIO()
    Line("q", shown, lambda: 0.0, TABLE).on_batch_done(done(0))
    Log("q", "json", logged, lambda: 0.0, TABLE).on_batch_done(done(0))
    assert "lag 10  8 pauses" in shown.getvalue()
    assert json.loads(logged.getvalue().splitlines()[0])["pauses"] == 8


def test_inspect_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    inspection = replace(inspect(str(REPORTS_OF_VERSION_3)), figures=TABLE)
    data = inspection.data()
    assert [batch["pauses"] for batch in data["batches"]] == [30, 30]
    assert [part["last_batch"]["pauses"] for part in data["partitions"]] == [10, 10, 10]
    print_tables(inspection)
    headings = capsys.readouterr().out
    assert " pauses " in headings
    assert " paused " in headings


def test_a_batch_without_a_value_shows_none_and_keeps_the_last_in_prometheus() -> None:
    plain = BatchDone(done(1).progress, None)
    board, out = Board("q", Health(10.0), figures=TABLE), io.StringIO()
    page = LivePage(job(), Health(10.0), figures=TABLE)
    for batch in (done(0), plain):
        board.on_batch_done(batch)
        page.on_batch_done(batch)
    Log("q", "json", out, lambda: 0.0, TABLE).on_batch_done(plain)
    assert 'unskew_pauses{query="q"} 8.0' in generate_latest(board.make_registry()).decode()
    assert json.loads(page.data())["batches"][1]["memory"] is None
    assert "pauses" not in json.loads(out.getvalue().splitlines()[0])


def test_names_are_unique_within_each_display() -> None:
    for display in ("name", "page", "log"):
        names = [getattr(figure, display) for figure in FIGURES if getattr(figure, display)]
        assert len(set(names)) == len(names), display
    inspected = [(f.inspect, f.labels == PARTITION) for f in FIGURES if f.inspect]
    assert len(set(inspected)) == len(inspected)


def test_every_figure_is_shown_somewhere() -> None:
    for figure in FIGURES:
        assert figure.kind or figure.page or figure.log or figure.inspect, figure.name
