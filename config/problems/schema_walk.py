"""Which models may stand at a path of a job; messages suggest their fields."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from unskew.config.problems.problem import Path, format_path
from unskew.config.yaml.reader import Node


def find_chosen(model: type[BaseModel], root: Node, path: Path) -> list[type[BaseModel]]:
    """The models that the file chooses at `path`: one, unless `type` is missing."""
    node: Node | None = root
    chosen = [model]
    in_mapping = False
    for part in path:
        node = _get_child(node, part)
        if in_mapping:
            # The name of an entry, which the user chose, is no field.
            chosen, in_mapping = _choose(chosen, node), False
        else:
            in_mapping = any(_is_mapping(each, part) for each in chosen)
            chosen = _follow_step(chosen, part, node)
    return chosen


def find_fields(model: type[BaseModel], root: Node, path: Path) -> dict[str, FieldInfo]:
    """The fields by their names in YAML of the model that the file chooses at `path`."""
    return {
        name: field
        for model_ in find_chosen(model, root, path)
        for name, field in list_yaml_fields(model_).items()
    }


def find_models(model: type[BaseModel], root: Node, path: Path) -> dict[str, dict[str, FieldInfo]]:
    """The fields of every model that could be chosen at `path`, by its `type`."""
    if not path:
        return {}
    chosen = find_chosen(model, root, path[:-1])
    models_inside = [inner for each in chosen for inner in _find_inner_models(each, path[-1])]
    return {read_tag(each): list_yaml_fields(each) for each in models_inside if read_tag(each)}


def find_homes(model: type[BaseModel], key: str) -> list[str]:
    """Find the paths of a job at which a key of this name may stand."""
    homes: dict[str, None] = {}
    for name, field in list_yaml_fields(model).items():
        for inner in _find_models_in(field.annotation):
            if key in list_yaml_fields(inner):
                homes[format_path((name, key)) if name != "sinks" else f"sinks[0].{key}"] = None
        if name == key:
            homes[key] = None
    return [f'"{home}"' for home in homes]


def list_yaml_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields by the names they have in YAML."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def read_tag(model: type[BaseModel]) -> str:
    """The `type` that chooses this model; empty if none does."""
    field = model.model_fields.get("type")
    if field is None or get_origin(field.annotation) is not Literal:
        return ""
    return str(get_args(field.annotation)[0])


def _get_child(node: Node | None, part: str | int) -> Node | None:
    if node is None:
        return None
    if isinstance(node.value, dict):
        return node.value.get(str(part))
    if isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
        return node.value[part]
    return None


def _follow_step(
    models: list[type[BaseModel]], part: str | int, node: Node | None
) -> list[type[BaseModel]]:
    if isinstance(part, int):
        return _choose(models, node)
    inner = [inner_model for model in models for inner_model in _find_inner_models(model, part)]
    return _choose(inner, node)


def _is_mapping(model: type[BaseModel], part: str | int) -> bool:
    """Has the field entries under names that the user chooses?"""
    field = None if isinstance(part, int) else list_yaml_fields(model).get(part)
    return field is not None and get_origin(field.annotation) is dict


def _find_inner_models(model: type[BaseModel], part: str | int) -> list[type[BaseModel]]:
    if isinstance(part, int):
        return [model]
    field = list_yaml_fields(model).get(part)
    return [] if field is None else list(_find_models_in(field.annotation))


def _choose(models: list[type[BaseModel]], node: Node | None) -> list[type[BaseModel]]:
    kind = _get_child(node, "type")
    if kind is None:
        return models
    written = kind.value if isinstance(kind.value, str) else None
    return [model for model in models if read_tag(model) in {"", written}]


def _find_models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from _find_models_in(get_args(annotation)[0])
    else:
        for inner in get_args(annotation):
            yield from _find_models_in(inner)
