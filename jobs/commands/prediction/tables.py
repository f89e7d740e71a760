"""The answer on a terminal: the predictions, the sentence, and why."""

from rich.console import Console

from unskew.jobs.commands.prediction.answer import Answer
from unskew.jobs.local.terminal_tables import make_console, print_fitting

_KEYS_SHOWN = 5
_KEY_WIDTH = 40


def print_answer(answer: Answer) -> None:
    """Tables, the sentence, and what is to be known of them."""
    console = make_console()
    sample, work = answer.sample, answer.work
    console.print(
        f"{sample.where}: {sample.hashes.size:,} of {sample.there:,} records,"
        f" {answer.profile.keys:,} keys; batches of {answer.batch_records:,},"
        f" {answer.partitions} partitions; work {_to_microseconds(work.cost)} a record and"
        f" {_to_microseconds(work.setup)} a key",
        markup=False,
    )
    _print_predictions(console, answer)
    console.print(answer.advice, markup=False)
    for note in answer.notes:
        console.print(note, markup=False)
    _print_keys(console, answer)
    console.print(_describe_head(answer), markup=False)
    _print_scaling(console, answer)
    console.print(f"Constants of {answer.constants_of}.", markup=False)


def _print_predictions(console: Console, answer: Answer) -> None:
    headings = ("grouping", "batch s", "records/s", "max/mean", "pairs", "slowest s", "merge s")
    chosen = [number for number, each in enumerate(answer.predictions) if each is answer.chosen]
    rows = [
        (
            f"{each.way} <" if number in chosen else each.way,
            f"{each.seconds:.2f}",
            f"{each.records_per_second:,.0f}",
            f"{each.max_over_mean:.2f}",
            f"{each.pairs:,.0f}",
            f"{each.parts.work:.2f}",
            f"{each.parts.merge:.2f}",
        )
        for number, each in enumerate(answer.predictions)
    ]
    print_fitting(console, headings, rows, bold=chosen)


def _print_keys(console: Console, answer: Answer) -> None:
    headings = ("heaviest keys", "records", "share", "of a partition")
    heaviest = zip(answer.key_names, answer.profile.heaviest, strict=True)
    rows = []
    for name, key in list(heaviest)[:_KEYS_SHOWN]:
        shown = "".join(character if character.isprintable() else "?" for character in name)
        if len(shown) > _KEY_WIDTH:
            shown = f"{shown[: _KEY_WIDTH - 1]}\N{HORIZONTAL ELLIPSIS}"
        fair = key.share * answer.partitions
        rows.append((shown, f"{key.records:,}", f"{key.share:.2%}", f"{fair:.0%}"))
    print_fitting(console, headings, rows)


def _describe_head(answer: Answer) -> str:
    profile = answer.profile
    keys = "1 key" if profile.head_keys == 1 else f"{profile.head_keys:,} keys"
    return (
        f"Head: {keys} with {profile.head_share:.1%} of the records. Drift:"
        f" {profile.drift:.1%} of the records moved to other keys between the halves of the sample."
    )


def _print_scaling(console: Console, answer: Answer) -> None:
    ways = list(answer.steps[0].seconds)
    headings = ["partitions", *(text for way in ways for text in (f"{way}: batch s", "faster"))]
    first = answer.steps[0].seconds
    rows = []
    for step in answer.steps:
        knee = " <- enough" if step.partitions == answer.knee else ""
        cells = [
            text
            for way in ways
            for text in (f"{step.seconds[way]:.2f}", f"{first[way] / step.seconds[way]:.1f}x")
        ]
        rows.append([f"{step.partitions}", *cells[:-1], f"{cells[-1]}{knee}"])
    print_fitting(console, headings, rows)


def _to_microseconds(seconds: float) -> str:
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} us"
