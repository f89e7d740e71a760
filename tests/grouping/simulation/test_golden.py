"""Golden reports of the simulator: every registered grouping on every trace, and some options.

They follow the registry by themselves. `make golden` writes them again; the diff is to be reviewed.
"""

import json
from pathlib import Path

import pytest

from unskew.grouping.registry import GROUPINGS
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.streams.traces import TRACES, open_trace

FOLDER = Path(__file__).parents[2] / "golden" / "simulate"
REPAIR = "if the change is meant, write it again with `make golden` and review the diff"
RECORDS = 12_000
SCENARIO = Scenario(partitions=8, sources=3, seed=2, cost_us=100.0, batch_records=4000, points=3)
DIGITS = 9
OPTIONS = {
    "d_choices:choices=5": "zipf",
    "fish:rule=d_choices": "zipf-drift",
    "fish:rule=w_choices": "zipf-drift",
    "fish:placement=modulo": "zipf-drift",
    "fish:assignment=records,memory=stream": "zipf-drift",
    "posg:memory=stream,synchronise_records=64": "posg-costs",
}
"""Options that are there for comparisons with papers, each with a trace of its paper."""
OPTIONS_FILE = FOLDER.parent / "simulate_options.json"
TIMED = ("routing_seconds", "routing_records_per_second")


def golden_text(grouping: str) -> str:
    """The reports of one grouping."""
    return _text({name: _report(GroupingSpec(grouping), name) for name in TRACES})


def golden_options() -> str:
    """The reports of groupings with options."""
    return _text(
        {spec: _report(GroupingSpec.parse(spec), trace) for spec, trace in OPTIONS.items()}
    )


def _report(spec: GroupingSpec, trace: str) -> dict[str, object]:
    """What a clock measured is left out, floats are rounded."""
    opened = open_trace(f"{trace}:records={RECORDS}")
    figures = simulate(opened, spec, SCENARIO, lambda: 0.0).to_dict()
    for timed in TIMED:
        figures.pop(timed)
    figures["over_time"].pop("routing_records_per_second")
    figures.pop("latency_percentiles_ms")  # a hundred numbers of which three are there by name
    return {figure: _rounded(value) for figure, value in figures.items()}


def _text(reports: dict[str, dict[str, object]]) -> str:
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


def test_reports_with_options_are_the_golden_ones(request: pytest.FixtureRequest) -> None:
    text = golden_options()
    if request.config.getoption("--golden"):
        OPTIONS_FILE.write_text(text)

    golden = json.loads(OPTIONS_FILE.read_text())
    assert json.loads(text) == golden, REPAIR


def test_every_golden_file_belongs_to_a_grouping(request: pytest.FixtureRequest) -> None:
    strays = [path for path in FOLDER.glob("*.json") if path.stem not in GROUPINGS]
    if request.config.getoption("--golden"):
        for path in strays:
            path.unlink()
        strays = []

    assert strays == [], REPAIR
