"""The answer on a terminal: the predictions, the sentence, and why."""

import sys

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unskew.jobs.commands.prediction.answer import Answer

_PIPE_WIDTH = 120
_KEYS_SHOWN = 5
_KEY_WIDTH = 40


def print_answer(answer: Answer) -> None:
    """Tables, the sentence, and what is to be known of them."""
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
    sample, work = answer.sample, answer.work
    console.print(
        f"{sample.where}: {sample.hashes.size:,} of {sample.there:,} records,"
        f" {answer.profile.keys:,} keys; batches of {answer.batch_records:,},"
        f" {answer.partitions} partitions; work {_microseconds(work.cost)} a record and"
        f" {_microseconds(work.setup)} a key",
        markup=False,
    )
    console.print(_make_predictions(answer))
    console.print(answer.advice, markup=False)
    for note in answer.notes:
        console.print(note, markup=False)
    console.print(_make_keys(answer))
    console.print(_describe_head(answer), markup=False)
    console.print(_make_scaling(answer))
    console.print(f"Constants of {answer.constants_of}.", markup=False)


def _make_predictions(answer: Answer) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    columns = ("grouping", "batch s", "records/s", "max/mean", "pairs", "slowest s", "merge s")
    for name in columns:
        table.add_column(name, justify="left" if name == "grouping" else "right", no_wrap=True)
    for each in answer.predictions:
        chosen = each.way == answer.chosen.way
        table.add_row(
            f"{each.way} <" if chosen else each.way,
            f"{each.seconds:.2f}",
            f"{each.records_per_second:,.0f}",
            f"{each.max_over_mean:.2f}",
            f"{each.pairs:,.0f}",
            f"{each.parts.work:.2f}",
            f"{each.parts.merge:.2f}",
            style="bold" if chosen else None,
        )
    return table


def _make_keys(answer: Answer) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("heaviest keys", overflow="ellipsis", max_width=_KEY_WIDTH, no_wrap=True)
    for name in ("records", "share", "of a partition"):
        table.add_column(name, justify="right", no_wrap=True)
    heaviest = zip(answer.key_names, answer.profile.heaviest, strict=True)
    for name, key in list(heaviest)[:_KEYS_SHOWN]:
        shown = "".join(letter if letter.isprintable() else "?" for letter in name)
        fair = key.share * answer.partitions
        table.add_row(escape(shown), f"{key.records:,}", f"{key.share:.2%}", f"{fair:.0%}")
    return table


def _describe_head(answer: Answer) -> str:
    profile = answer.profile
    return (
        f"Head: {profile.head_keys:,} keys with {profile.head_share:.1%} of the records. Drift:"
        f" {profile.drift:.1%} of the records moved to other keys between the halves of the sample."
    )


def _make_scaling(answer: Answer) -> Table:
    ways = list(answer.steps[0].seconds)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("partitions", justify="right")
    for way in ways:
        table.add_column(f"{way}: batch s", justify="right", no_wrap=True)
        table.add_column("faster", justify="right", no_wrap=True)
    first = answer.steps[0].seconds
    for step in answer.steps:
        knee = " <- enough" if step.partitions == answer.knee else ""
        cells = [
            text
            for way in ways
            for text in (f"{step.seconds[way]:.2f}", f"{first[way] / step.seconds[way]:.1f}x")
        ]
        table.add_row(f"{step.partitions}", *cells[:-1], f"{cells[-1]}{knee}")
    return table


def _microseconds(seconds: float) -> str:
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} us"
