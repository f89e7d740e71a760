"""The options that `simulate` and `compare` share, from words to checked values."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from pydantic import ValidationError

from unskew.config.errors import UsageError
from unskew.grouping.errors import GroupingError
from unskew.grouping.options.broken_rules import list_problems
from unskew.grouping.options.printed import show
from unskew.grouping.options.scalars import ScalarError
from unskew.grouping.simulation.meters.predictors import make_predictor
from unskew.grouping.simulation.pace import batch_size, point_size
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec
from unskew.grouping.simulation.specs import SpecError, scalar
from unskew.grouping.simulation.streams.traces import TRACE_NAMES, FileTrace, Trace, open_trace

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_SCENARIO_OPTIONS = {
    "partitions": "N",
    "sources": "N",
    "seed": "N",
    "cost_us": "X",
    "arrival_per_second": "R",
    "utilisation": "X",
    "batch_records": "N",
    "batch_seconds": "S",
    "feedback_seconds": "S",
    "feedback_records": "N",
    "reports": "routed|completed",
    "pending": "N",
    "source_per_second": "R",
    "hot_share": "X",
    "predictor": "SPEC",
    "head_theta": "X",
    "keys_moved": "true",
    "full_knowledge": "true",
    "memory_pairs": "N",
    "miss_us": "X",
    "streams": "N",
    "points": "N",
    "point_seconds": "S",
}


@dataclass(frozen=True)
class Experiment:
    """A trace, the groupings to route it with, and all the rest."""

    trace: Trace
    trace_spec: str
    groupings: list[GroupingSpec]
    scenario: Scenario


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every simulation."""
    traces = ", ".join(f"{name}:PATH" if name == FileTrace.name else name for name in TRACE_NAMES)
    # No word is converted by argparse: it would stop at the first that is wrong.
    parser.add_argument(
        "--trace", metavar="SPEC", help=f"name:option=value,... with a name of: {traces}"
    )
    for name, value in _SCENARIO_OPTIONS.items():
        described = Scenario.model_fields[name].description or ""
        summary = described[:1].lower() + described[1:].rstrip(".")
        parser.add_argument(_make_flag(name), metavar=value, dest=name, help=summary)
    parser.add_argument(
        "--speeds",
        action="append",
        metavar="[FROM:]S,S,...",
        help="speeds of the partitions, repeated in turn; from record FROM on (0); may repeat",
    )
    parser.add_argument(
        "--active",
        action="append",
        metavar="[FROM:]N",
        help="only the first N partitions are active; from record FROM on (0); may repeat",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the figures over time")


def read_options(arguments: argparse.Namespace, groupings: list[str]) -> Experiment:
    """The experiment; an error reports every problem."""
    problems: list[str] = [] if groupings else ["--grouping: missing"]

    def attempt(
        make: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result | None:
        try:
            return make(*args, **kwargs)
        except SpecError as error:
            problems.extend(error.problems)
        except GroupingError as error:
            problems.append(str(error))
        return None

    specs = [attempt(GroupingSpec.parse, text) for text in groupings]
    trace = attempt(_open_trace, arguments.trace)
    scenario = attempt(_read_scenario, arguments)
    if scenario is not None and scenario.predictor is not None:
        attempt(make_predictor, scenario.predictor, scenario.seed)
    chosen = [spec for spec in specs if spec is not None]
    if scenario is not None and trace is not None:
        attempt(point_size, trace, scenario)
    if scenario is not None:
        for spec in chosen:
            router = attempt(spec.create, scenario, 0)
            if router is not None and trace is not None:
                attempt(batch_size, trace, scenario, router.wants_feedback)
    attempt(_check_plot, arguments.plot)
    if problems or trace is None or scenario is None:
        raise UsageError(*dict.fromkeys(problems))
    return Experiment(trace, arguments.trace, chosen, scenario)


def _open_trace(text: str | None) -> Trace:
    if not text:
        raise SpecError("--trace: missing")
    return open_trace(text)


def _read_scenario(arguments: argparse.Namespace) -> Scenario:
    values: dict[str, object] = {}
    problems: list[str] = []
    for name in _SCENARIO_OPTIONS:
        text = getattr(arguments, name)
        try:
            if text is not None:
                values[name] = scalar(text)
        except ScalarError as error:
            problems.append(f"{_make_flag(name)}: {error.rule}; {error.suggestion}")
    for name, read in (("speeds", _read_speeds), ("active", scalar)):
        try:
            values |= _read_stages(name, getattr(arguments, name) or [], read)
        except ScalarError as error:
            problems.append(f"{_make_flag(name)}: {error.rule}; {error.suggestion}")
    if problems:
        raise SpecError(*problems)
    try:
        return Scenario.model_validate(values)
    except ValidationError as error:
        raise SpecError(*map(_name_flag, list_problems("", Scenario, error))) from error


def _read_stages(
    name: str, texts: list[str], read: Callable[[str], object]
) -> dict[str, tuple[object, ...]]:
    """The values of an option that may change with the records, and from which on each holds."""
    if not texts:
        return {}
    parts = [text.rpartition(":") for text in texts]
    begins = tuple(scalar(begin) if colon else 0 for begin, colon, _ in parts)
    return {f"{name}_from": begins, name: tuple(read(value) for _, _, value in parts)}


def _read_speeds(text: str) -> object:
    return tuple(scalar(speed) for speed in text.split(","))


def _check_plot(path: str | None) -> None:
    if path is None:
        return
    if not path.endswith(".png"):
        raise SpecError(f"--plot: a file name that ends with .png (got {show(path)})")
    if not Path(path).parent.is_dir():
        raise SpecError(f"--plot: {Path(path).parent}: no such folder")
    try:
        import matplotlib.figure  # noqa: F401, PLC0415 - an extra: asked for before the work
    except ImportError as error:
        raise SpecError("--plot: needs matplotlib: pip install 'unskew[plot]'") from error


def _make_flag(name: str) -> str:
    # Both parts of a stage come from one option.
    return "--" + name.removesuffix("_from").replace("_", "-")


def _name_flag(line: str) -> str:
    # ".cost_us: rule" of one field, "a and b: rule" or "a: rule" of several.
    fields, colon, rule = line.lstrip(": ").partition(":")
    names = [_make_flag(name.strip(" .").partition(".")[0]) for name in fields.split(" and ")]
    return " and ".join(names) + colon + rule
