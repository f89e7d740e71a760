"""What `compare --cost` adds: predicted batches of every way, also without routing, and advice."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic_core import PydanticCustomError
from rich import box
from rich.console import Console
from rich.table import Table

from unskew.config.errors import UsageError
from unskew.config.types.units import Duration
from unskew.grouping.base import UInt64s
from unskew.grouping.options.printed import show
from unskew.grouping.simulation.batch_cost import HASHED, LOCAL, WAYS, Machine, Prediction, Work
from unskew.grouping.simulation.batch_cost import predict as predict_way
from unskew.jobs.commands.simulation.options import Experiment

RECORDS_MAX = 2_000_000
"""Of a longer trace, the first so many records are looked at."""
_CLOSE = 1.05
_SPARK = (
    "Sums, counts and Spark's own sketches need none of this: groupBy combines them before its"
    " shuffle."
)


@dataclass(frozen=True)
class Asked:
    """The operator's costs, and how many partitions are worked on at once."""

    work: Work
    slots: int | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a prediction."""
    parser.add_argument(
        "--cost",
        metavar="T",
        help="predict batch seconds, also of `none` and `local`: an operator's time for a record,"
        " such as 50us",
    )
    parser.add_argument(
        "--setup", metavar="T", help="its time for each key that a task meets, such as 1ms"
    )
    parser.add_argument("--slots", metavar="N", help="partitions worked on at once; by default all")


def read_asked(arguments: argparse.Namespace) -> Asked | None:
    """What is to be predicted, if anything; an error reports every problem."""
    problems: list[str] = []
    seconds = {"cost": 0.0, "setup": 0.0}
    for name in seconds:
        text = getattr(arguments, name)
        if text is not None:
            try:
                seconds[name] = Duration.parse(text).seconds
            except PydanticCustomError as error:
                problems.append(f"--{name}: {error.message()} (got {show(text)})")
    slots = arguments.slots
    if slots is not None and not (slots.isascii() and slots.isdecimal() and int(slots) > 0):
        problems.append(f"--slots: a whole number from 1 (got {show(slots)})")
    if arguments.cost is None and (arguments.setup is not None or slots is not None):
        problems.append("--cost: missing, but --setup and --slots need it; such as --cost 50us")
    if problems:
        raise UsageError(*problems)
    if arguments.cost is None:
        return None
    return Asked(Work(**seconds), int(slots) if slots else None)


def predict(experiment: Experiment, asked: Asked) -> list[Prediction]:
    """Every way's batches of the trace, the fastest first."""
    scenario = experiment.scenario
    machine = Machine(asked.slots or scenario.partitions)
    batches = _batches(experiment)
    made = [
        predict_way(way, batches, scenario.partitions, scenario.sources, asked.work, machine)
        for way in WAYS
    ]
    return sorted(made, key=lambda prediction: prediction.seconds)


def advise(predictions: Sequence[Prediction]) -> str:
    """One sentence on what to take, and what is no reason for it."""
    by_way = {prediction.way: prediction for prediction in predictions}
    hashed, local = by_way[HASHED].seconds, by_way[LOCAL].seconds
    best = min(prediction.seconds for prediction in predictions)
    if hashed <= _CLOSE * best:
        return (
            f"You do not need Unskew for this job: by the key's hash a batch takes {hashed:.2f} s,"
            f" and no way is more than 5 % faster. {_SPARK}"
        )
    if local <= _CLOSE * best:
        return (
            f"Work where you read: with grouping local a batch takes {local:.2f} s, by the key's"
            f" hash {hashed:.2f} s, and no routing is more than 5 % faster. By hand: mapInArrow on"
            f" even splits, and a groupBy behind it. {_SPARK}"
        )
    close = [each for each in predictions if each.seconds <= _CLOSE * best]
    chosen = min(close, key=lambda prediction: prediction.pairs)
    return (
        f"Use {chosen.way}: a batch takes {chosen.seconds:.2f} s, by the key's hash {hashed:.2f} s"
        f" ({hashed / chosen.seconds:.1f}x), at the source {local:.2f} s"
        f" ({local / chosen.seconds:.1f}x). {_SPARK}"
    )


def to_json(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Predictions and advice as plain values."""
    return {"advice": advise(predictions), "predictions": [asdict(each) for each in predictions]}


def print_predictions(experiment: Experiment, predictions: Sequence[Prediction]) -> None:
    """One row a way, and the sentence."""
    title = f"predicted, batches of {_batch_records(experiment):,} records"
    table = Table(box=box.SIMPLE_HEAD, title=title)
    for name in ("grouping", "batch s", "slowest s", "max/mean", "pairs"):
        table.add_column(name, justify="left" if name == "grouping" else "right", no_wrap=True)
    for each in predictions:
        figures = (f"{each.seconds:.2f}", f"{each.slowest:.2f}", f"{each.max_over_mean:.2f}")
        table.add_row(each.way, *figures, f"{each.pairs:,.0f}")
    Console().print(table)
    print(advise(predictions))


def _batch_records(experiment: Experiment) -> int:
    return experiment.scenario.batch_records or experiment.trace.records


def _batches(experiment: Experiment) -> list[UInt64s]:
    size = _batch_records(experiment)
    chunks: list[UInt64s] = []
    for chunk in experiment.trace.chunks():
        chunks.append(chunk.keys)
        if sum(keys.size for keys in chunks) >= RECORDS_MAX:
            break
    keys = np.concatenate(chunks)[:RECORDS_MAX]
    whole = [keys[start : start + size] for start in range(0, keys.size, size)]
    # What is left over at the end is no batch of this size.
    return whole[:-1] if len(whole) > 1 and whole[-1].size < size else whole
