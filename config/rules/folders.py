"""Folders that two parts of a job must not share."""

from collections.abc import Iterator
from posixpath import normpath
from typing import Any

from unskew.config.models.sink import TargetOptions
from unskew.config.problems.problem import Path, format_path
from unskew.config.rules.registry import Contradiction, rule


@rule("source", "sinks", "dead_letters", "checkpoint")
def folders_are_apart(
    source: Any, sinks: list[TargetOptions], dead_letters: TargetOptions, checkpoint: str
) -> Iterator[Contradiction]:
    """No folder may be, or be inside, another one of the job's."""
    folders: list[tuple[Path, str]] = [(("checkpoint",), checkpoint)]
    if source.type == "files":
        folders.append((("source", "path"), source.path))
    targets: list[tuple[Path, TargetOptions]] = [
        *((("sinks", index), sink) for index, sink in enumerate(sinks)),
        (("dead_letters",), dead_letters),
    ]
    for path, target in targets:
        folders += [((*path, field), folder) for field, folder in target.folders().items()]
    for later, (path, folder) in enumerate(folders):
        for other_path, other in folders[:later]:
            same = normal(folder) == normal(other)
            # `sinks_are_distinct` reports two sinks in one folder.
            both_sinks = path[0] == other_path[0] == "sinks"
            if overlap(folder, other) and not (both_sinks and same):
                how = "the same as" if same else "not apart from"
                yield Contradiction(
                    path,
                    f'"{folder}" is {how} {format_path(other_path)} "{other}"',
                    "give each a folder of its own",
                )


def normal(location: str) -> str:
    """Normalize a path or URI, so that two spellings of one folder compare equal."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return normpath(location.removeprefix("file:"))
    return normpath(rest) if scheme == "file" else f"{scheme}://{normpath(rest)}"


def overlap(location: str, other: str) -> bool:
    """Is a folder the other one, or does one of them hold the other?"""
    first, second = normal(location), normal(other)
    return first == second or first.startswith(second + "/") or second.startswith(first + "/")
