"""Plain values as nodes, put into a document that was read."""

import re
from collections.abc import Mapping, Sequence

from unskew.config.problems.problem import Part, Path, Position
from unskew.config.yaml.reader import Node
from unskew.grouping.options.scalars import Scalar

_OPTIONS = frozenset({"spark", "options"})
_INDEX = re.compile(r"\[(\d+)\]")


def override(root: Node, dotted_path: str, value: object) -> Path:
    """Put `value` at `dotted_path` (`sinks[0].topic`), making the mappings that lead there.

    Returns the path of what is not the file's any more: the value, or the first of the mappings.
    """
    parts = _split_path(dotted_path)
    node, depth = root, len(parts)
    for at, part in enumerate(parts[:-1]):
        child = _find_child(node, part)
        if child is None:
            child = Node(node.position, {})
            _put(node, part, child)
            depth = min(depth, at + 1)
        node = child
    _put(node, parts[-1], make_node(value, node.position))
    return tuple(parts[:depth])


def _split_path(dotted_path: str) -> list[Part]:
    words = _INDEX.sub(r".\1", dotted_path).split(".")
    for index, word in enumerate(words[:-1]):
        if word in _OPTIONS:
            # Below it are names with dots of their own, such as spark.sql.session.timeZone.
            words[index + 1 :] = [".".join(words[index + 1 :])]
            break
    return [int(word) if word.isdecimal() else word for word in words]


def make_node(value: object, position: Position) -> Node:
    """A node as if `value` had been written, in quotes, at `position`."""
    if isinstance(value, Mapping):
        children = {str(key): make_node(child, position) for key, child in value.items()}
        return Node(position, children, key_positions=dict.fromkeys(children, position))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Node(position, [make_node(child, position) for child in value])
    scalar: Scalar = value if isinstance(value, int | float | str | None) else str(value)
    return Node(position, scalar, "" if scalar is None else str(scalar))


def _find_child(node: Node, part: Part) -> Node | None:
    if isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
        return node.value[part]
    if isinstance(node.value, dict) and str(part) in node.value:
        return node.value[str(part)]
    return None


def _put(node: Node, part: Part, child: Node) -> None:
    if isinstance(node.value, list) and isinstance(part, int):
        if part < len(node.value):
            node.value[part] = child
        else:
            node.value.append(child)
        return
    if not isinstance(node.value, dict):
        node.value = {}
    node.value[str(part)] = child
    node.key_positions.setdefault(str(part), child.position)
