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
        "With grouping auto: 1 for what the last batch had, otherwise 0.",
        _from_choice(lambda choice: {way: int(way == choice.way) for way in WAYS}), ("way",)),
    Figure("taken", "",
        "What the batch had.",
        _from_choice(lambda choice: choice.way), page="choice.way", log="taken", line="by {}",
        inspect="taken", column=("taken", "{}")),
    Figure("taken_next", "",
        "What the next batches have.",
        _from_choice(lambda choice: choice.next_way), page="choice.next_way", inspect="taken_next"),
    Figure("taken_why", "",
        "Why, in seconds.",
        _from_choice(lambda choice: choice.why), page="choice.why", log="why", inspect="taken_why"),
    Figure("expected_batch_seconds", "gauge",
        "With grouping auto: what the model expects of a batch under each way it may take, by the"
        " last batches.",
        _from_expected("seconds"), ("way",), page="choice.expected", inspect="expected_seconds"),
    Figure("expected_batch_deviation_seconds", "gauge",
        "The standard deviation of the difference to what is taken; of that, of its own seconds.",
        _from_expected("deviation"), ("way",), inspect="expected_deviation_seconds"),
    Figure("grouping_changes", "counter",
        "With grouping auto: how often the query was started anew with another grouping.",
        _from_choice(lambda choice: int(choice.change_seconds is not None))),
    Figure("grouping_change_seconds", "counter",
        "What that took: from the decision to the new query, and by how much its first batch took"
        " longer than expected.",
        _from_choice(lambda choice: choice.change_seconds or 0.0)),
    Figure("grouping_change_discarded_records", "counter",
        "Records of the batch under way that had been routed or worked on when the query was"
        " stopped, and were read again.",
        _from_choice(lambda choice: choice.discarded_records)),
    Figure("batch_change_seconds", "",
        "What a change took, in the first batch after it.",
        _from_choice(lambda choice: choice.change_seconds), log="change_seconds",
        inspect="change_seconds", column=("change s", "{:.1f}")),
)
# fmt: on
