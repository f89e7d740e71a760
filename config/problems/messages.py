"""Translates pydantic's errors into problems with our texts and positions in the file."""

import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from unskew.config.problems.problem import Part, Path, Position, Problem, format_path
from unskew.config.problems.schema_walk import find_fields, find_homes, find_models
from unskew.config.problems.user_options import KNOWN
from unskew.config.specs import SECTIONS
from unskew.config.yaml.reader import Node
from unskew.grouping.options import broken_rules
from unskew.grouping.options.broken_rules import (
    MISSING,
    Written,
    describe_broken_rule,
    describe_unknown,
)
from unskew.grouping.options.suggestions import find_nearest, one_of, suggest_nearest

PROBLEMS_MAX = 100
_BOUNDS = frozenset({"greater_than_equal", "greater_than", "less_than_equal", "less_than"})
"""Kinds of errors of a number that is beyond a bound."""
RESULTS_LIST = "operators"
"""What a job may have in the place of `operator` and `sinks`: no field of its own."""


def describe_errors(
    model: type[BaseModel], root: Node, errors: Sequence[ErrorDetails]
) -> list[Problem]:
    """One problem for each wrong position, however many alternatives of a union failed there."""
    by_path: dict[tuple[Path, str], list[tuple[str, Problem]]] = {}
    for error in errors[:PROBLEMS_MAX]:
        path = find_path(root, error["loc"])
        problem = _describe_error(model, root, path, error)
        by_path.setdefault((path, _classify(error)), []).append((error["type"], problem))
    joined = [_join(_prefer_bounds(group)) for group in by_path.values()]
    if len(errors) > PROBLEMS_MAX:
        last = max(problem.position for problem in joined)
        rule = f"{len(errors) - PROBLEMS_MAX} more problems"
        joined.append(Problem(last, "job", rule, "mend those above first"))
    return joined


def find_path(root: Node, loc: Sequence[Part]) -> Path:
    """The path in the file: pydantic's, without the tags of unions that it puts in."""
    path: list[Part] = []
    node: Node | None = root
    tag_taken = False
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if part == "[key]":
            break
        if node is None:
            path.append(part)
        elif isinstance(node.value, dict):
            kind = node.value.get("type")
            # The document itself is no union, whatever its key `type` says.
            if index and not tag_taken and kind is not None and kind.value == part:
                tag_taken = True
            elif str(part) in node.value:
                path.append(str(part))
                node = node.value[str(part)]
                tag_taken = False
            elif (last or tag_taken) and isinstance(part, str) and part.isidentifier():
                # Not in the file, nor is what is below it.
                path.append(part)
                node = None
        elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
            path.append(part)
            node = node.value[part]
            tag_taken = False
    return tuple(path)


def find(root: Node, path: Path) -> tuple[Node | None, Position]:
    """The node at `path`, and the position to report; of a missing key, that of its parent."""
    node, position = root, root.position
    for part in path:
        if isinstance(node.value, dict) and str(part) in node.value:
            key_position = node.key_positions.get(str(part), position)
            node = node.value[str(part)]
            # What is inside or missing is best looked for from the key.
            whole = node.value is None or isinstance(node.value, dict)
            position = key_position if whole else node.position
        elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            position = node.position
        else:
            return None, node.key_positions.get(str(part), position)
    return node, position


def show_got(node: Node | None) -> str:
    """` (got ...)` as messages show the value of `node`."""
    return broken_rules.got(_read_written(node))


def _read_written(node: Node | None) -> Written | None:
    return (
        None
        if node is None
        else Written(node.value, node.text, node.plain, node.secret or node.referenced)
    )


def _describe_error(model: type[BaseModel], root: Node, path: Path, error: ErrorDetails) -> Problem:
    node, position = find(root, path)
    kind, options = error["type"], error.get("ctx", {}).get(KNOWN)
    if kind == "extra_forbidden":
        parent, _ = find(root, path[:-1])
        if parent is not None:
            position = parent.key_positions.get(str(path[-1]), position)
        rule, advice = _describe_unknown_key(model, root, path, options)
    elif "[key]" in error["loc"]:
        parent, _ = find(root, path[:-1])
        if parent is not None:
            position = parent.key_positions.get(str(path[-1]), position)
        rule, advice = describe_broken_rule(error, Written(str(path[-1])))
    elif kind == "missing" or (node is not None and node.value is None):
        rule, advice = MISSING, _suggest_addition(model, root, path, options)
    elif kind == "union_tag_not_found":
        near = find_nearest("type", node.value) if node and isinstance(node.value, dict) else None
        if near is not None:
            return _describe_error(model, root, (*path, near), {**error, "type": "extra_forbidden"})
        rule, advice = MISSING, one_of(_list_types(model, root, path))
        path = (*path, "type")
    elif kind == "union_tag_invalid":
        return _describe_wrong_type(model, root, path)
    else:
        rule, advice = describe_broken_rule(error, _read_written(node))
    return Problem(position, format_path(path), rule, advice)


def _describe_wrong_type(model: type[BaseModel], root: Node, path: Path) -> Problem:
    node, position = find(root, (*path, "type"))
    known = _list_types(model, root, path)
    if node is None or not isinstance(node.value, str):
        return Problem(
            position, format_path((*path, "type")), f"a text{show_got(node)}", one_of(known)
        )
    return Problem(
        position,
        format_path((*path, "type")),
        f"unknown type{show_got(node)}",
        suggest_nearest(node.value, known),
    )


def _list_types(model: type[BaseModel], root: Node, path: Path) -> list[str]:
    """The types that can be chosen at `path`."""
    installed = SECTIONS[str(path[0])].list_installed_names() if _is_typed_section(path) else []
    return list(dict.fromkeys([*find_models(model, root, path), *installed]))


def _is_typed_section(path: Path) -> bool:
    """Does an operator or a sink stand at `path`?"""
    return path[:1] in {(section,) for section in SECTIONS} and not any(
        isinstance(part, str) for part in path[1:]
    )


def _describe_unknown_key(
    model: type[BaseModel], root: Node, path: Path, options: Mapping[str, str] | None
) -> tuple[str, str]:
    key, parents = str(path[-1]), path[:-1]
    known = _list_known_keys(model, root, parents) if options is None else list(options)
    parent, _ = find(root, parents)
    others = [
        other
        for other, fields in find_models(model, root, parents).items()
        if key in fields and key not in known
    ]
    if others and parent is not None and isinstance(parent.value, dict) and "type" in parent.value:
        chosen = parent.value["type"].value
        return (
            f"type {chosen} has no such key, it belongs to {_list_some(others)}",
            f"remove it, or change {format_path((*parents, 'type'))}",
        )
    unused = [name for name in known if parent is None or name not in parent.key_positions]
    near = find_nearest(key, unused)
    rule, advice = describe_unknown("key", key, known if near is None else [near])
    homes = find_homes(model, key) if near is None and options is None else []
    if homes:
        return rule, f"did you mean {' or '.join(homes[:3])}?"
    if near is None and (there := find_nearest(key, known, cutoff=0.8)):
        return rule, f'did you mean "{there}"? That key is set already'
    return rule, advice


def _list_known_keys(model: type[BaseModel], root: Node, path: Path) -> list[str]:
    """The keys that the file may have at `path`, also those that are written out as others."""
    known = list(find_fields(model, root, path))
    if not path:
        return [*known, RESULTS_LIST]
    return [*known, "sinks"] if path[:-1] == ("operator", "results") else known


def _list_some(types: list[str]) -> str:
    shown = ", ".join(types[:3])
    return f"type {shown}" + (f" and {len(types) - 3} more" if len(types) > 3 else "")


def _suggest_addition(
    model: type[BaseModel], root: Node, path: Path, options: Mapping[str, str] | None
) -> str:
    if not path:
        return 'write "name: ...", "source:" and so on'
    name = str(path[-1])
    if options is None:
        field = find_fields(model, root, path[:-1]).get(name)
        description = None if field is None else field.description
    else:
        description = options.get(name)
    if not description:
        return "add it"
    about = " ".join(description.split())
    return f"add it: {_take_first_sentence(about)}"


def _take_first_sentence(text: str) -> str:
    end = re.search(r"[.;:](\s|$)", text)
    sentence = text[: end.start()] if end else text
    return sentence[:1].lower() + sentence[1:]


def _classify(error: ErrorDetails) -> str:
    """Errors at one path that are alternatives of one union are joined; others stay apart."""
    return "key" if error["type"] in {"extra_forbidden", "missing"} else "value"


def _prefer_bounds(group: list[tuple[str, Problem]]) -> list[Problem]:
    """The problems, only those of bounds where there are such: the value's type was right."""
    beyond = [problem for kind, problem in group if kind in _BOUNDS]
    return beyond or [problem for _, problem in group]


def _join(group: list[Problem]) -> Problem:
    if len(group) == 1:
        return group[0]
    first = group[0]
    heads, tail = [], ""
    for problem in group:
        head, opened, rest = problem.rule.partition(" (got ")
        heads.append(head)
        tail = opened + rest
    suggestion = next((problem.suggestion for problem in group if problem.suggestion), "")
    return Problem(
        first.position, first.path, ", or ".join(dict.fromkeys(heads)) + tail, suggestion
    )
