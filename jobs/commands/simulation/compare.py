"""`unskew compare`: which grouping is the fastest for given keys and costs, or none at all."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from unskew.config.errors import ExternalError
from unskew.grouping.registry import GROUPINGS
from unskew.grouping.simulation.compare import ranked, verdict
from unskew.jobs.commands.prediction import options
from unskew.jobs.commands.simulation.compiling import show_steps
from unskew.jobs.commands.simulation.options import Experiment, add_options, read_options
from unskew.jobs.commands.simulation.output import draw, print_table, run_all

_BATCHES = 10
_EPILOG = f"""example: unskew compare --topic clicks --bootstrap-servers 127.0.0.1:9092
--key "get_json_object(value, '$.user')" --partitions 16 --cost 50us --setup 1ms.
With --trace alone, balance and pairs are simulated, without a prediction of seconds; without an
arrival rate or micro-batches the trace is then cut into {_BATCHES}."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Predict batch seconds, records a second, balance and pairs of every grouping, of work at"
        " the source (local) and of Spark's own hash (none), from a sample of a topic, a file, a"
        " trace or a job's source; then say in one sentence what to take, or that Unskew is not"
        " needed. Exit codes: 0 there is an answer, 1 brokers do not answer or refuse, 2 the"
        " command line, the job or the records are of no use."
    )
    add_options(parser)
    options.add_options(parser)
    parser.epilog = _EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Print tables and a sentence, or all as one JSON object."""
    return (_predict if options.is_prediction(arguments) else _simulate)(arguments)


def _predict(arguments: argparse.Namespace) -> int:
    question = options.read_question(arguments)
    if question.table:
        return _predict_writers(question, as_json=arguments.json)
    # Imported here to keep --help fast.
    from unskew.jobs.commands.prediction.answer import answer  # noqa: PLC0415
    from unskew.jobs.commands.prediction.report_page import make_page  # noqa: PLC0415
    from unskew.jobs.commands.prediction.sample_reader import take_sample  # noqa: PLC0415
    from unskew.jobs.commands.prediction.tables import print_answer  # noqa: PLC0415

    inputs = take_sample(question)
    with show_steps("predicting") as begun:
        prediction = answer(question, inputs, begun)
    if question.html is not None:
        _write(question.html, make_page(prediction))
    if arguments.json:
        print(json.dumps(prediction.to_json(), indent=2))
    else:
        print_answer(prediction)
    return 0


def _predict_writers(question: options.Question, *, as_json: bool) -> int:
    # Imported here to keep --help fast.
    from unskew.jobs.commands.prediction.sample_reader import take_sample  # noqa: PLC0415
    from unskew.jobs.commands.prediction.table_answer import answer, print_answer  # noqa: PLC0415

    inputs = take_sample(question)
    with show_steps("predicting") as begun:
        prediction = answer(question, inputs, begun)
    if as_json:
        print(json.dumps(prediction.to_json(), indent=2))
    else:
        print_answer(prediction)
    return 0


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise ExternalError(f"compare: --html {file}: {error.strerror}") from error


def _simulate(arguments: argparse.Namespace) -> int:
    experiment = _set_batch_size(read_options(arguments, list(GROUPINGS)))
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


def _set_batch_size(experiment: Experiment) -> Experiment:
    # Micro-batches are what this is about, and without an end no partition would ever report.
    scenario = experiment.scenario
    if scenario.batched or scenario.arrival_per_second is not None:
        return experiment
    size = -(-experiment.trace.records // _BATCHES)
    return replace(experiment, scenario=scenario.model_copy(update={"batch_records": size}))
