"""The figures of `grouping: auto`: what it takes, why, and what changes cost."""

from collections.abc import Callable
from typing import Any

from unskew.grouping.choice.records import BatchChoice
from unskew.grouping.choice.ways import WAYS
from unskew.jobs.observe.figure import Figure, Value


def _from_choice(take: Callable[[BatchChoice], Any]) -> Value:
    """Make a value from what `grouping: auto` chose; none for another grouping."""
    return lambda done: None if done.choice is None else take(done.choice)


def _from_expected(name: str) -> Value:
    """Read a number of each way that was compared; none where nothing was."""
    return _from_choice(
        lambda choice: {way: getattr(each, name) for way, each in choice.expected.items()} or None
    )


# Laid out by hand, as the table that they are part of.
# fmt: off
CHOICE_FIGURES: tuple[Figure, ...] = (
    Figure("grouping_taken", "gauge",
        "With grouping auto: 1 for the way that the last batch had, otherwise 0.",
        _from_choice(lambda choice: {way: int(way == choice.way) for way in WAYS}), ("way",)),
    Figure("taken", "",
        "The way that the batch had.",
        _from_choice(lambda choice: choice.way), page="choice.way", log="taken", line="by {}",
        inspect="taken", column=("taken", "{}")),
    Figure("taken_next", "",
        "The way of the next batches.",
        _from_choice(lambda choice: choice.next_way), page="choice.next_way", inspect="taken_next"),
    Figure("taken_why", "",
        "Why auto chose the way of the next batches, in seconds.",
        _from_choice(lambda choice: choice.why), page="choice.why", log="why", inspect="taken_why"),
    Figure("expected_batch_seconds", "gauge",
        "With grouping auto: predicted seconds of a batch under each way that auto may choose, from"
        " the last batches.",
        _from_expected("seconds"), ("way",), page="choice.expected", inspect="expected_seconds"),
    Figure("expected_batch_deviation_seconds", "gauge",
        "With grouping auto: for each way, the standard deviation of its predicted seconds minus"
        " the current way's; for the current way, of its own prediction.",
        _from_expected("deviation"), ("way",), inspect="expected_deviation_seconds"),
    Figure("grouping_changes", "counter",
        "With grouping auto: how often the query was restarted with another grouping.",
        _from_choice(lambda choice: int(choice.change_seconds is not None))),
    Figure("grouping_change_seconds", "counter",
        "With grouping auto: time lost to changes of grouping: from the decision to the new query's"
        " start, plus the seconds by which its first batch exceeded its prediction.",
        _from_choice(lambda choice: choice.change_seconds or 0.0)),
    Figure("grouping_change_discarded_records", "counter",
        "With grouping auto: records that were routed or worked on in a batch that was stopped for"
        " a change, and were processed again.",
        _from_choice(lambda choice: choice.discarded_records)),
    Figure("batch_change_seconds", "",
        "Time that a change of grouping took, in the first batch after it.",
        _from_choice(lambda choice: choice.change_seconds), log="change_seconds",
        inspect="change_seconds", column=("change s", "{:.1f}")),
)
# fmt: on
