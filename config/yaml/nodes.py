"""Plain values as nodes, put into a document that was read."""

from collections.abc import Mapping, Sequence

from unskew.config.problems.problem import Part, Position
from unskew.config.yaml.reader import Node
from unskew.grouping.options.scalars import Scalar

_OPTIONS = frozenset({"spark", "options"})


def override(root: Node, dotted_path: str, value: object) -> None:
    """Put `value` at `dotted_path` (`sinks.0.topic`), making the mappings that lead there."""
    parts = _split_path(dotted_path)
    node = root
    for part in parts[:-1]:
        node = _get_child(node, part)
    _put(node, parts[-1], node_of(value, node.position))


def _split_path(dotted_path: str) -> list[Part]:
    words = dotted_path.split(".")
    for index, word in enumerate(words[:-1]):
        if word in _OPTIONS:
            # Below it are names with dots of their own, such as spark.sql.session.timeZone.
            words[index + 1 :] = [".".join(words[index + 1 :])]
            break
    return [int(word) if word.isdecimal() else word for word in words]


def node_of(value: object, position: Position) -> Node:
    """A node as if `value` had been written, in quotes, at `position`."""
    if isinstance(value, Mapping):
        children = {str(key): node_of(child, position) for key, child in value.items()}
        return Node(position, children, key_positions=dict.fromkeys(children, position))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Node(position, [node_of(child, position) for child in value])
    scalar: Scalar = value if isinstance(value, int | float | str | None) else str(value)
    return Node(position, scalar, "" if scalar is None else str(scalar))


def _get_child(node: Node, part: Part) -> Node:
    if isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
        return node.value[part]
    if isinstance(node.value, dict) and str(part) in node.value:
        return node.value[str(part)]
    made = Node(node.position, {})
    _put(node, part, made)
    return made


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
