"""How many files a change touches, and how long a record's way is: counted from the code.

`python -m docs.reference.counts [--check]` prints the table and puts it into
docs/ARCHITECTURE.md.

What it takes to add a member of a family is counted by the members there are: the files of the
rooms that name its class, as an identifier or in a text `module:Class`; and a test and a changelog
fragment. What most of a family take counts, and those that take more are named. A figure that a
task measures is counted by `latency_seconds`: the files that have it as a name.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from docs.reference.record_way import PAGE, ROOT, measure, read_way, read_whole
from docs.reference.write_or_check import with_section, write_or_check
from unskew.config.registry import Registry
from unskew.config.specs import OPERATORS, SINKS
from unskew.grouping.registry import GROUPINGS

MARK = "counts"
ROOMS = ("jobs", "config", "grouping")
FILES_BESIDE = 2
"""A test and a changelog fragment."""


@cache
def sources() -> Mapping[str, ast.Module]:
    """The modules of the rooms."""
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in paths}


def files_naming(name: str) -> list[str]:
    """The modules that name a class or an attribute."""
    return sorted(_files_by_name().get(name, ()))


@cache
def _files_by_name() -> Mapping[str, set[str]]:
    naming: dict[str, set[str]] = {}
    for file, module in sources().items():
        for node in ast.walk(module):
            for name in _names(node):
                naming.setdefault(name, set()).add(file)
    return naming


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
        yield node.value.rpartition(":")[2]
    for field in ("id", "attr", "name", "arg"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield name


def files_for(classes: Mapping[str, type]) -> str:
    """Files that another member of a family touches, by the classes of those there are."""
    sizes = {name: len(files_naming(each.__name__)) for name, each in classes.items()}
    ((usual, _),) = Counter(sizes.values()).most_common(1)
    exceptions = [
        f"; `{name}`: {FILES_BESIDE + size}" for name, size in sizes.items() if size > usual
    ]
    return f"{FILES_BESIDE + usual}{''.join(exceptions)}"


def _load_all(registry: Registry) -> dict[str, type]:
    return {name: registry.load(name) for name in registry.list_shipped_names()}


def folder_sizes() -> dict[str, int]:
    """How many modules are in each folder of the rooms, without its `__init__`."""
    sizes: dict[str, int] = {}
    for file in sources():
        folder, _, name = file.rpartition("/")
        sizes[folder] = sizes.get(folder, 0) + (name != "__init__.py")
    return sizes


def counts(page: str) -> dict[str, int | str]:
    """Count each row of the table; the counts by the row's name."""
    way, whole = measure(read_way(page).values()), read_whole(page)
    sizes = folder_sizes()
    largest = max(sizes, key=lambda folder: sizes[folder])
    return {
        "files of a record's way": way.files,
        "turns back on it": way.turns_back,
        "files of it if nothing is left out": whole.files,
        "turns back if nothing is left out": whole.turns_back,
        "files for a sink": files_for(_load_all(SINKS)),
        "files for an operator": files_for(_load_all(OPERATORS)),
        "files for a grouping": files_for(GROUPINGS),
        "files for a figure that a task measures": FILES_BESIDE
        + len(files_naming("latency_seconds")),
        "largest folder": f"`{largest}`, {sizes[largest]} modules",
    }


def main(words: list[str]) -> int:
    """Print the table and write it, or check it."""
    page = PAGE.read_text("utf-8")
    rows = [f"| {name} | {value} |\n" for name, value in counts(page).items()]
    text = "\n| what | how many |\n|---|---|\n" + "".join(rows) + "\n"
    if not words:
        print(text.strip())
    pages = {PAGE: with_section(page, MARK, text)}
    return write_or_check(words, lambda: pages, "python -m docs.reference.counts")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
