"""Sinks, among themselves."""

from collections.abc import Iterator

from unskew.config.models.sink import TargetOptions
from unskew.config.problems.problem import Path, format_path
from unskew.config.rules.registry import Contradiction, rule


@rule("sinks")
def sinks_are_distinct(sinks: list[TargetOptions]) -> Iterator[Contradiction]:
    """Two sinks with one target would write over each other."""
    seen: dict[tuple[object, ...], int] = {}
    for index, sink in enumerate(sinks):
        identity = sink.identity()
        first = seen.setdefault((sink.type, identity), index)
        if first != index:
            other: Path = ("sinks", first, identity.field)
            yield Contradiction(
                ("sinks", index, identity.field),
                f"the same as {format_path(other)}: both would write there",
                "change or remove one",
            )
