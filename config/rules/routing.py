"""Rules on the grouping, its partitions, and what the operator allows."""

from collections.abc import Iterator
from typing import Any

from unskew.config.models.grouping import (
    GROUPING_MODELS,
    AutoGrouping,
    read_grouping_options,
    splits_keys,
)
from unskew.config.models.operator import OperatorOptions
from unskew.config.rules.registry import Contradiction, rule
from unskew.config.specs import load_operator
from unskew.grouping.base import Setting
from unskew.grouping.errors import GroupingError
from unskew.grouping.registry import GROUPINGS


@rule("operator", "grouping")
def splitting_is_allowed(operator: OperatorOptions, grouping: Any) -> Iterator[Contradiction]:
    """Some operators must see all records of a key in one partition."""
    chosen = load_operator(operator)
    if chosen.splits or not splits_keys(grouping.type):
        return
    whole = [name for name in GROUPING_MODELS if not splits_keys(name)]
    yield Contradiction(
        ("grouping", "type"),
        f"{grouping.type} splits keys, and operator.type {operator.type} forbids that",
        f"keys stay whole with {', '.join(whole)}",
    )


@rule("operator", "grouping")
def bytes_are_known(operator: OperatorOptions, grouping: Any) -> Iterator[Contradiction]:
    """Bytes can be balanced where rows are written as they are."""
    if getattr(grouping, "balance", "") != "bytes":
        return
    chosen = load_operator(operator)
    if chosen.merges:
        yield Contradiction(
            ("grouping", "balance"),
            f"bytes are those of a table's rows, and operator.type {operator.type} makes none",
            "write records or seconds, or operator.type: rows",
        )


@rule("operator", "grouping")
def auto_has_a_merge(operator: OperatorOptions, grouping: Any) -> Iterator[Contradiction]:
    """`auto` compares ways to make partial results, and rows of a table have none."""
    chosen = load_operator(operator)
    if isinstance(grouping, AutoGrouping) and not chosen.merges:
        yield Contradiction(
            ("grouping", "type"),
            f"auto contradicts operator.type {operator.type}: nothing is merged, so there is"
            " nothing to choose by",
            "write grouping.type: level",
        )


@rule("operator", "grouping")
def times_are_measured(operator: OperatorOptions, grouping: Any) -> Iterator[Contradiction]:
    """A partition of rows reports how long it took to receive them, not to write them."""
    chosen = load_operator(operator)
    if chosen.merges:
        return
    advice = {
        "balance": (getattr(grouping, "balance", "") == "seconds", "write records"),
        "assignment": (
            getattr(grouping, "assignment", "") == "waiting_time",
            "write assignment: records",
        ),
        "type": (grouping.type == "posg", "write grouping.type: level"),
    }
    for field, (is_timed, suggestion) in advice.items():
        if is_timed:
            yield Contradiction(
                ("grouping", field),
                f"{grouping.type} needs the times of partitions, which operator.type"
                f" {operator.type} does not report before the next batch",
                suggestion,
            )


@rule("grouping", "partitions", "seed")
def options_fit_partitions(grouping: Any, partitions: int, seed: int) -> Iterator[Contradiction]:
    """A grouping may refuse options that do not fit the number of partitions."""
    if grouping.type not in GROUPINGS:
        return
    chosen = GROUPINGS[grouping.type]
    params = chosen.Params(**read_grouping_options(grouping))
    if params == chosen.Params():
        # Defaults fit any number of partitions, and making one loads compiled code: 0.2 s.
        return
    try:
        chosen(Setting(partitions, seed=seed), params)
    except GroupingError as error:
        yield Contradiction(
            ("grouping",),
            f"with partitions {partitions}: {error}",
            "" if ";" in str(error) else "change the option or partitions",
        )
