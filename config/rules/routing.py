"""Grouping, partitions and what the operator can bear."""

from collections.abc import Iterator
from typing import Any

from unskew.config.models.grouping import grouping_options
from unskew.config.models.operator import OperatorOptions, Paced
from unskew.config.rules.registry import Contradiction, rule
from unskew.grouping.base import Setting
from unskew.grouping.errors import GroupingError
from unskew.grouping.registry import GROUPINGS


@rule("operator", "grouping")
def splitting_is_allowed(operator: OperatorOptions, grouping: Any) -> Iterator[Contradiction]:
    """Some operators must see all records of a key in one place."""
    if operator.splits or grouping.type not in GROUPINGS or not GROUPINGS[grouping.type].splits:
        return
    whole = [name for name, known in GROUPINGS.items() if not known.splits]
    yield Contradiction(
        ("grouping", "type"),
        f"{grouping.type} splits keys, and operator.type {operator.type} forbids that",
        f"keys stay whole with {', '.join(['none', *whole])}",
    )


@rule("operator", "partitions")
def slow_partitions_exist(operator: OperatorOptions, partitions: int) -> Iterator[Contradiction]:
    """A factor for a partition that is not there would go unnoticed."""
    for partition in operator.partition_factors if isinstance(operator, Paced) else ():
        if partition >= partitions:
            yield Contradiction(
                ("operator", "partition_factors", str(partition)),
                f"there is no partition {partition} with partitions {partitions}",
                f"from 0 to {partitions - 1}",
            )


@rule("operator", "grouping")
def slow_partitions_are_routed_to(
    operator: OperatorOptions, grouping: Any
) -> Iterator[Contradiction]:
    """Without routing there are no partitions to be slow."""
    if not isinstance(operator, Paced) or not operator.partition_factors:
        return
    if grouping.type == "none":
        yield Contradiction(
            ("operator", "partition_factors"),
            "partition_factors contradicts grouping.type none: nothing is routed",
            "remove partition_factors, or choose another grouping",
        )


@rule("grouping", "partitions", "seed")
def options_fit_partitions(grouping: Any, partitions: int, seed: int) -> Iterator[Contradiction]:
    """A grouping may refuse options that do not fit the number of partitions."""
    if grouping.type not in GROUPINGS:
        return
    chosen = GROUPINGS[grouping.type]
    params = chosen.Params(**grouping_options(grouping))
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
