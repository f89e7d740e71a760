"""Golden reports of the simulator: every registered grouping on every trace.

They follow the registry by themselves. `make golden` writes them anew; the diff is to be reviewed.
"""

import json
from pathlib import Path

import pytest

from unskew.grouping.registry import GROUPINGS
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.traces import TRACES, open_trace

FOLDER = Path(__file__).parents[2] / "golden" / "simulate"
REPAIR = "if the change is meant, write it anew with `make golden` and review the diff"
RECORDS = 12_000
SCENARIO = Scenario(partitions=8, sources=3, seed=2, cost_us=100.0, batch_records=4000, points=3)
DIGITS = 9
TIMED = ("routing_seconds", "routing_records_per_second")


def golden_text(grouping: str) -> str:
    """The reports of one grouping; what a clock measured is left out, floats are rounded."""
    reports: dict[str, dict[str, object]] = {}
    for name in TRACES:
        trace = open_trace(f"{name}:records={RECORDS}")
        figures = simulate(trace, GroupingSpec(grouping), SCENARIO, lambda: 0.0).to_dict()
        for timed in TIMED:
            figures.pop(timed)
        figures["over_time"].pop("routing_records_per_second")
        reports[name] = {figure: _rounded(value) for figure, value in figures.items()}
    # A line a figure: a diff shows which figures of which trace have changed.
    return _block(
        {
            trace: _block({name: json.dumps(value) for name, value in report.items()}, "  ")
            for trace, report in reports.items()
        }
    )


def _block(lines: dict[str, str], margin: str = "") -> str:
    inner = ",\n".join(f'{margin}  "{name}": {text}' for name, text in lines.items())
    return f"{{\n{inner}\n{margin}}}" + ("" if margin else "\n")


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_reports_are_the_golden_ones(grouping: str, request: pytest.FixtureRequest) -> None:
    path = FOLDER / f"{grouping}.json"
    text = golden_text(grouping)
    if request.config.getoption("--golden"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert path.is_file(), f"{path.name} is missing; {REPAIR}"
    golden = json.loads(path.read_text())
    for trace, report in json.loads(text).items():
        assert report == golden.get(trace), f"{grouping} on {trace} differs; {REPAIR}"
    assert path.read_text() == text, f"{path.name} is stale; {REPAIR}"


def test_every_golden_file_belongs_to_a_grouping(request: pytest.FixtureRequest) -> None:
    strays = [path for path in FOLDER.glob("*.json") if path.stem not in GROUPINGS]
    if request.config.getoption("--golden"):
        for path in strays:
            path.unlink()
        strays = []

    assert strays == [], REPAIR
