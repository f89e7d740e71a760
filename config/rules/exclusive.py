"""Fields of which at most one may be given: judged by their presence, so also beside mistakes."""

from pydantic import BaseModel

from config.problems import Problem, dotted
from config.schema_walk import chosen_at
from config.yaml_reader import Node


def exclusive_problems(model: type[BaseModel], root: Node) -> list[Problem]:
    """One problem for each field that comes after another of its group."""
    found: list[Problem] = []
    assert isinstance(root.value, dict)
    for section, node in root.value.items():
        if not isinstance(node.value, dict):
            continue
        for chosen in chosen_at(model, root, (section,)):
            for group in getattr(chosen, "exclusive", ()):
                given = [
                    name
                    for name in node.value
                    if name in group and node.value[name].value is not None
                ]
                found += [
                    Problem(
                        node.key_positions[name],
                        dotted((section, name)),
                        f"{name} contradicts {dotted((section, given[0]))}:"
                        f" only one of {', '.join(group)} may be given",
                        "remove one of them",
                    )
                    for name in given[1:]
                ]
    return found
