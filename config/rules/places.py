"""Paths, topics and tables that two parts of a job must not share."""

from collections.abc import Iterator
from posixpath import normpath
from typing import Any

from unskew.config.problems.problem import Path, dotted
from unskew.config.rules.registry import Contradiction, rule


@rule("sinks")
def sinks_are_distinct(sinks: list[Any]) -> Iterator[Contradiction]:
    """Two sinks in one place would write over each other."""
    seen: dict[tuple[object, ...], int] = {}
    for index, sink in enumerate(sinks):
        identity, field = _identity(sink)
        if identity in seen:
            first: Path = ("sinks", seen[identity])
            yield Contradiction(
                ("sinks", index, field),
                f"the same as {dotted((*first, field))}: both would write there",
                "change or remove one",
            )
        seen.setdefault(identity, index)


def _identity(sink: Any) -> tuple[tuple[object, ...], str]:
    if sink.type == "kafka":
        return ("kafka", sink.bootstrap_servers, sink.topic), "topic"
    if sink.type == "files":
        return ("files", clean(sink.path)), "path"
    if sink.type == "postgres":
        return ("postgres", sink.url, sink.table), "table"
    if sink.type == "memory":
        return ("memory", sink.table.lower()), "table"
    return (sink.type,), "type"


@rule("source", "sinks", "dead_letters", "checkpoint")
def folders_are_apart(
    source: Any, sinks: list[Any], dead_letters: Any, checkpoint: str
) -> Iterator[Contradiction]:
    """No folder may be, or be inside, another one of the job's."""
    folders: list[tuple[Path, str]] = [(("checkpoint",), checkpoint)]
    if source.type == "files":
        folders.append((("source", "path"), source.path))
    folders += [
        (("sinks", index, "path"), sink.path)
        for index, sink in enumerate(sinks)
        if sink.type == "files"
    ]
    if dead_letters.type == "files":
        folders.append((("dead_letters", "path"), dead_letters.path))
    for later, (path, folder) in enumerate(folders):
        for other_path, other in folders[:later]:
            both_sinks = path[0] == other_path[0] == "sinks"
            if overlap(folder, other) and not (both_sinks and clean(folder) == clean(other)):
                how = "the same as" if clean(folder) == clean(other) else "not apart from"
                yield Contradiction(
                    path,
                    f'"{folder}" is {how} {dotted(other_path)} "{other}"',
                    "give each a folder of its own",
                )


def clean(place: str) -> str:
    """A path or URI without what does not change where it leads."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return normpath(place.removeprefix("file:"))
    return normpath(rest) if scheme == "file" else f"{scheme}://{normpath(rest)}"


def overlap(one: str, other: str) -> bool:
    """Is one place the other, or inside it?"""
    first, second = clean(one), clean(other)
    return first == second or first.startswith(second + "/") or second.startswith(first + "/")
