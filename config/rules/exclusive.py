"""Fields of which at most one may be given: judged by their presence, so also beside mistakes."""

from collections.abc import Iterator

from pydantic import BaseModel

from unskew.config.models.base import Model
from unskew.config.problems.problem import Problem, format_path
from unskew.config.problems.schema_walk import find_chosen
from unskew.config.yaml.reader import Node
from unskew.grouping.options.suggestions import one_of


def find_exclusive_problems(model: type[BaseModel], root: Node) -> list[Problem]:
    """One problem for each field that comes after another of its group, or if none comes at all."""
    assert isinstance(root.value, dict)
    return [
        problem
        for section, node in root.value.items()
        if isinstance(node.value, dict)
        for chosen in find_chosen(model, root, (section,))
        if issubclass(chosen, Model)
        for group in chosen.exclusive
        for problem in _group_problems(root, section, group, group == chosen.needed)
    ]


def _group_problems(
    root: Node, section: str, group: tuple[str, ...], needed: bool
) -> Iterator[Problem]:
    assert isinstance(root.value, dict)
    node = root.value[section]
    assert isinstance(node.value, dict)
    given = [
        name for name, child in node.value.items() if name in group and child.value is not None
    ]
    choices = one_of(group)
    if needed and not given:
        position = root.key_positions[section]
        yield Problem(position, format_path((section, group[0])), "missing", f"add {choices}")
    for name in given[1:]:
        yield Problem(
            node.key_positions[name],
            format_path((section, name)),
            f"{name} contradicts {format_path((section, given[0]))}: only {choices} may be given",
            "remove one of them",
        )
