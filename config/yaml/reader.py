"""Reads one YAML document into nodes that know their position in the file.

Built on PyYAML's events rather than its constructor, so that a hostile file costs little: depth,
nodes (aliases counted as often as they are used) and bytes are bounded, tags are refused, and
nothing recurses. Scalars follow YAML 1.2, see `scalars`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from unskew.config.files import read_regular_file
from unskew.config.problems.problem import DocumentError, Position, Problem
from unskew.config.shipped import list_shipped_names
from unskew.grouping.options.printed import show
from unskew.grouping.options.scalars import Scalar, ScalarError, resolve
from unskew.grouping.options.suggestions import find_nearest

FILE_BYTES_MAX = 256 * 1024
DEPTH_MAX = 40
NODES_MAX = 10_000

_START = Position(1, 1)
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


@dataclass
class Node:
    """A scalar, a list or a mapping, where it begins, and how it was written."""

    position: Position
    value: "Scalar | list[Node] | dict[str, Node]"
    text: str = ""
    """A scalar's text, without quotes."""
    plain: bool = False
    """Was the scalar written without quotes, so that its text decides its type?"""
    key_positions: dict[str, Position] = field(default_factory=dict)
    source: str | None = None
    """The text before references in it were expanded; None if it has none."""
    secret: bool = False
    """Must this value stay hidden?"""
    referenced: bool = False
    """Did a reference bring it from outside? Its name then does not say whether it is a secret."""
    size: int = 1
    height: int = 0

    def data(self) -> object:
        """Return the plain Python value."""
        if isinstance(self.value, dict):
            return {key: child.data() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.data() for child in self.value]
        return self.value


def read_text(path: Path) -> str:
    """The text of a job file; every way in which it cannot be read is one problem."""
    try:
        raw = read_regular_file(path, FILE_BYTES_MAX)
    except FileNotFoundError:
        near = find_nearest(path.name, list_shipped_names()) if path.parent == Path() else None
        advice = f'did you mean the shipped job "{near}"?' if near else "check the path"
        raise _make_file_error("does not exist", advice) from None
    except IsADirectoryError:
        raise _make_file_error("is a folder without YAML files", "name a file") from None
    except PermissionError:
        raise _make_file_error("may not be read", "check its permissions") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _make_file_error(f"cannot be read: {reason}", "check the path") from None
    if len(raw) > FILE_BYTES_MAX:
        raise _make_file_error(
            f"larger than {FILE_BYTES_MAX // 1024} KiB", "a job file is a few pages of YAML"
        )
    return decode_text(raw)


def decode_text(raw: bytes) -> str:
    """`raw` as UTF-8, if it is."""
    if b"\0" in raw:
        raise _make_file_error("is binary, not text", "name a YAML file in UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        raise DocumentError(
            Problem(Position(line, column), "file", "is not UTF-8", "save it as UTF-8")
        ) from None


def parse(text: str) -> tuple[Node, list[Problem]]:
    """The document's root, and the problems that did not stop the reading."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = _START if mark is None else Position(mark.line + 1, mark.column + 1)
        raise DocumentError(*builder.problems, _describe_syntax_error(position, error)) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        position = Position(before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1)
        rule = f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        raise DocumentError(Problem(position, "yaml", rule, "remove or escape it")) from None
    except (ValueError, OverflowError):
        # PyYAML turns the number of a %YAML directive or an escape into one too large.
        rule, advice = "not YAML: a number in it is out of range", "check escapes and directives"
        raise DocumentError(Problem(_START, "yaml", rule, advice)) from None
    if builder.root is None:
        problem = Problem(_START, "job", "the file is empty", "see the shipped jobs for a start")
        raise DocumentError(problem)
    return builder.root, builder.problems


def walk(
    node: Node, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every node below and with `node`, with its path."""
    yield path, node
    if isinstance(node.value, dict):
        for key, child in node.value.items():
            yield from walk(child, (*path, key))
    elif isinstance(node.value, list):
        for index, child in enumerate(node.value):
            yield from walk(child, (*path, index))


@dataclass
class _Open:
    """A list or mapping whose end has not come yet."""

    node: Node
    anchor: str | None
    key: str | None = None
    awaits_key: bool = True


class _Builder:
    def __init__(self) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        mark: Any = event.start_mark
        position = Position(mark.line + 1, mark.column + 1)
        if isinstance(event, yaml.DocumentStartEvent):
            if self.root is not None:
                self._stop(position, "more than one document", "write one job a file")
        elif isinstance(event, yaml.AliasEvent):
            node = self._follow_alias(position, event.anchor)
            self._count(position, node.size)
            self._add(position, node)
        elif isinstance(event, yaml.ScalarEvent):
            self._count(position, 1)
            self._reject_tag(position, event)
            node = self._resolve_scalar(position, event)
            if event.anchor:
                self._anchors[event.anchor] = node
            self._add(position, node)
        elif isinstance(event, _OPENING):
            self._count(position, 1)
            self._begin(position, event)
        elif isinstance(event, _CLOSING):
            ended = self._open.pop()
            if ended.anchor:
                self._anchors[ended.anchor] = ended.node
            self._add(ended.node.position, ended.node)

    def _count(self, position: Position, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > NODES_MAX:
            rule = f"more than {NODES_MAX} values, those of aliases counted again"
            self._stop(position, rule, "a job is a few pages of YAML")

    def _begin(self, position: Position, event: yaml.CollectionStartEvent) -> None:
        self._reject_tag(position, event)
        if len(self._open) >= DEPTH_MAX:
            self._stop(position, f"nested deeper than {DEPTH_MAX} levels", "a job needs about five")
        if self._awaits_key():
            self._stop(position, "a list or mapping as a key", "quote the key if it is a text")
        node = Node(position, {} if isinstance(event, yaml.MappingStartEvent) else [])
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(node, event.anchor))

    def _resolve_scalar(self, position: Position, event: yaml.ScalarEvent) -> Node:
        text: str = event.value
        if any("\ud800" <= char <= "\udfff" for char in text):
            self.problems.append(
                Problem(
                    position, "yaml", "half of a surrogate pair is not a character", "remove it"
                )
            )
            text = text.encode("utf-8", "replace").decode()
        if not event.implicit[0]:
            return Node(position, text, text)
        try:
            value = text if self._awaits_key() else resolve(text)
        except ScalarError as error:
            self.problems.append(Problem(position, "yaml", error.rule, error.suggestion))
            value = text
        return Node(position, value, text, plain=True)

    def _follow_alias(self, position: Position, anchor: str | None) -> Node:
        if anchor is None or anchor not in self._anchors:
            self._stop(position, f"the alias *{anchor} has no anchor before it", f"add &{anchor}")
        node = self._anchors[anchor]
        if node is None:
            self._stop(position, f"the alias *{anchor} is inside what it names", "write it out")
        if len(self._open) + node.height > DEPTH_MAX:
            self._stop(position, f"nested deeper than {DEPTH_MAX} levels", "a job needs about five")
        return node

    def _add(self, position: Position, node: Node) -> None:
        """Put a finished node where it belongs."""
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.node.size += node.size
        parent.node.height = max(parent.node.height, node.height + 1)
        if isinstance(parent.node.value, list):
            parent.node.value.append(node)
        elif parent.awaits_key:
            self._add_key(parent, position, node)
        else:
            self._add_value(parent, node)

    def _add_key(self, parent: _Open, position: Position, node: Node) -> None:
        parent.awaits_key = False
        if not isinstance(node.value, str):
            self._stop(position, "a list or mapping as a key", "write a text")
        parent.key = node.text
        if node.plain and node.text == "<<":
            self.problems.append(
                Problem(
                    position, "yaml", "merge keys (<<) are not in YAML 1.2", "write the keys out"
                )
            )
            parent.key = None
        elif node.text in parent.node.key_positions:
            first = parent.node.key_positions[node.text]
            self.problems.append(
                Problem(
                    position,
                    "yaml",
                    f"the key {show(node.text)} is a duplicate",
                    f"the first is in line {first.line}",
                )
            )
            parent.key = None
        else:
            parent.node.key_positions[node.text] = position

    def _add_value(self, parent: _Open, node: Node) -> None:
        parent.awaits_key = True
        if parent.key is not None:
            assert isinstance(parent.node.value, dict)
            parent.node.value[parent.key] = node

    def _awaits_key(self) -> bool:
        return (
            bool(self._open)
            and isinstance(self._open[-1].node.value, dict)
            and self._open[-1].awaits_key
        )

    def _reject_tag(self, position: Position, event: yaml.NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            self.problems.append(
                Problem(
                    position,
                    "yaml",
                    f"tags are not allowed (got {show(tag.replace('tag:yaml.org,2002:', '!!'))})",
                    "remove the tag",
                )
            )

    def _stop(self, position: Position, rule: str, suggestion: str) -> NoReturn:
        raise DocumentError(*self.problems, Problem(position, "yaml", rule, suggestion))


def _make_file_error(rule: str, suggestion: str) -> DocumentError:
    return DocumentError(Problem(_START, "file", rule, suggestion))


def _describe_syntax_error(position: Position, error: yaml.MarkedYAMLError) -> Problem:
    what = (error.problem or error.context or "it cannot be read").strip()
    advice = "check quotes, brackets and indentation here"
    if "\\t" in what:
        advice = "indent with spaces"
    elif "mapping values are not allowed" in what:
        advice = 'quote a text that holds ": "'
    elif what.startswith("could not find expected ':'"):
        advice = 'write "key: value"'
    elif "that cannot start any token" in what:
        advice = "quote a text that begins with it"
    opened = error.context_mark
    if opened is not None and opened.line + 1 != position.line:
        what += f" ({error.context} from line {opened.line + 1})"
    return Problem(position, "yaml", f"not YAML: {what}", advice)
