"""A case whose time is over: no further fault, and what was done before it counts."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.storm import __main__ as storm_main
from tests.storm.cases import CASES, Storm
from tests.storm.faults.reads import storm_reads
from tests.storm.harness.case import Case
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.points import POINTS, wait_for_point
from tests.storm.harness.services import Services
from tests.storm.oracle.world import routing_of


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[Storm]:
    with ExitStack() as stack:
        yield Storm(stack, tmp_path)


def test_no_point_is_waited_for_once_the_time_is_over(tmp_path: Path) -> None:
    services = Services(tmp_path, ExitStack())
    case = Case("queries", 3, tmp_path / "case", services, Counts(), seconds=0)
    stage = case.stage(sink="files", source="files", dead_letters="files")
    watched = stage.watched(routing_of(stage.world, case.rng()))
    assert case.is_over()
    assert wait_for_point(watched, POINTS[0], lambda: False, case.seconds_left()) is None
    still = Case("queries", 3, tmp_path / "case", services, Counts(), seconds=60)
    assert wait_for_point(watched, POINTS[0], lambda: False, still.seconds_left()) is not None


def test_faults_of_a_case_that_failed_are_not_counted(
    storm: Storm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: Storm, case: Case) -> None:
        storm_reads(case)
        raise StormError("totals differ")

    monkeypatch.setitem(CASES, "flips", fails)
    cases: Any = iter((("reads", 5), ("flips", 6)))
    exact, failed = storm_main._run(storm, cases, minutes=1)
    assert (exact[0].faults["file damaged, then read"], exact[1]) == (100, [])
    assert (failed[0].faults.total(), failed[0].outcomes["failed"]) == (0, 1)
    assert failed[1] == ["python -m tests.storm --only flips --seed 6 --cases 1"]
    assert "totals differ" in capsys.readouterr().out


def test_no_case_begins_once_the_time_is_over(storm: Storm) -> None:
    assert list(storm_main._run(storm, iter((("reads", 5),)), minutes=-1)) == []
