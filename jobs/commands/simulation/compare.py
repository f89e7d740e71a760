"""`unskew compare`: all groupings on one trace, best first, and whether one is needed."""

import argparse
import json
from dataclasses import replace

from unskew.grouping.registry import GROUPINGS
from unskew.grouping.simulation.compare import ranked, verdict
from unskew.jobs.commands.simulation.options import Experiment, add_options, read_options
from unskew.jobs.commands.simulation.output import draw, print_table, run_all

_BATCHES = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser)
    parser.epilog = f"Without an arrival rate or micro-batches, the trace is cut into {_BATCHES}."


def run(arguments: argparse.Namespace) -> int:
    """Print a table and a verdict, or both as one JSON object."""
    experiment = _in_batches(read_options(arguments, list(GROUPINGS)))
    reports = ranked(run_all(experiment))
    if arguments.json:
        rows = [report.to_dict() for report in reports]
        print(json.dumps({"verdict": verdict(reports), "groupings": rows}, indent=2))
    else:
        print_table(experiment, reports)
        print(verdict(reports))
    if arguments.plot:
        draw(arguments.plot, experiment, reports)
    return 0


def _in_batches(experiment: Experiment) -> Experiment:
    # Micro-batches are what this is about, and without an end no partition would ever report.
    scenario = experiment.scenario
    if scenario.batched or scenario.arrival_per_second is not None:
        return experiment
    size = -(-experiment.trace.records // _BATCHES)
    return replace(experiment, scenario=scenario.model_copy(update={"batch_records": size}))
