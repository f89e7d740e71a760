"""`unskew compare`: all groupings on one trace, best first, and whether one is needed."""

import argparse
import json
from dataclasses import replace

from unskew.config.errors import UsageError
from unskew.grouping.registry import GROUPINGS
from unskew.grouping.simulation.compare import ranked, verdict
from unskew.jobs.commands.simulation import prediction
from unskew.jobs.commands.simulation.options import Experiment, add_options, read_options
from unskew.jobs.commands.simulation.output import draw, print_table, run_all

_BATCHES = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser)
    prediction.add_options(parser)
    parser.epilog = f"Without an arrival rate or micro-batches, the trace is cut into {_BATCHES}."


def run(arguments: argparse.Namespace) -> int:
    """Print a table and a verdict, or both as one JSON object."""
    experiment, asked = _read(arguments)
    reports = ranked(run_all(experiment))
    predictions = prediction.predict(experiment, asked) if asked else []
    if arguments.json:
        rows = [report.to_dict() for report in reports]
        predicted = prediction.to_json(predictions) if predictions else {}
        result = {"verdict": verdict(reports), **predicted, "groupings": rows}
        print(json.dumps(result, indent=2))
    else:
        print_table(experiment, reports)
        if predictions:
            prediction.print_predictions(experiment, predictions)
        else:
            print(verdict(reports))
    if arguments.plot:
        draw(arguments.plot, experiment, reports)
    return 0


def _read(arguments: argparse.Namespace) -> tuple[Experiment, prediction.Asked | None]:
    """Both halves of the options, whose problems are reported at once."""
    problems: list[str] = []
    asked = None
    try:
        asked = prediction.read_asked(arguments)
    except UsageError as error:
        problems += error.problems
    try:
        experiment = read_options(arguments, list(GROUPINGS))
    except UsageError as error:
        raise UsageError(*error.problems, *problems) from error
    if asked and not experiment.trace.records:
        problems.append("--trace: has no records")
    if asked and experiment.scenario.batch_seconds:
        problems.append("--cost: predicts batches of --batch-records, not of --batch-seconds")
    if problems:
        raise UsageError(*problems)
    return _in_batches(experiment), asked


def _in_batches(experiment: Experiment) -> Experiment:
    # Micro-batches are what this is about, and without an end no partition would ever report.
    scenario = experiment.scenario
    if scenario.batched or scenario.arrival_per_second is not None:
        return experiment
    size = -(-experiment.trace.records // _BATCHES)
    return replace(experiment, scenario=scenario.model_copy(update={"batch_records": size}))
