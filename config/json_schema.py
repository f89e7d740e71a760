"""The JSON schema of job files, for editors and other checkers; generated from the models."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from unskew.config.models.base import Model
from unskew.config.models.job import Job, make_job_model
from unskew.config.registry import RegistryError
from unskew.config.shipped import SCHEMA_FILE
from unskew.config.specs import SECTIONS, make_section_model
from unskew.config.types.units import ByteSize, Duration
from unskew.config.yaml.results_list import SECTION as RESULTS
from unskew.config.yaml.shorthands import SHORTENED

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "Reference"
_SCALARS = {"integer", "number", "boolean"}


def write_schema(*, installed: bool = False) -> str:
    """The schema as it is committed; with `installed`, also the types of other packages."""
    models = {section: list(_load_installed(section)) for section in SECTIONS} if installed else {}
    return json.dumps(_make_schema(models), indent=2, ensure_ascii=False) + "\n"


def _load_installed(section: str) -> Iterator[type[Model]]:
    for name in SECTIONS[section].list_installed_names():
        with suppress(RegistryError):
            yield make_section_model(section, name)


def make_job_schema() -> dict[str, Any]:
    """The schema of the models alone, which does not allow references yet."""
    schema: dict[str, Any] = Job.model_json_schema(by_alias=True, schema_generator=_Generator)
    return schema


def is_schema_fresh() -> bool:
    """Does the committed schema match the models?"""
    try:
        return SCHEMA_FILE.read_text("utf-8") == write_schema()
    except OSError:
        return False


def _make_schema(models: Mapping[str, Sequence[type[Model]]]) -> dict[str, Any]:
    job = make_job_model(models)
    body = job.model_json_schema(by_alias=True, schema_generator=_Generator)
    definitions: dict[str, Any] = body.pop("$defs")
    _allow_references(body)
    _allow_references(definitions)
    definitions[_REFERENCE] = {
        "type": "string",
        "pattern": r"\$\{(env|file):",
        "description": "A value from the environment, ${env:NAME} or ${env:NAME:-default}, or from"
        " a file, ${file:/path}.",
    }
    for section in SHORTENED:
        _allow_text(body["properties"][section])
    for section in SECTIONS:
        field = body["properties"][section]
        _choose_by_type(field.get("items", field))
    for section in body["properties"].values():
        for choice in (section, *section.get("anyOf", ())):
            if "discriminator" in choice:
                _choose_by_type(choice)
    _allow_results(body, definitions)
    return {"$schema": DIALECT, **body, "$defs": definitions}


class _Generator(GenerateJsonSchema):
    """Leaves out pydantic's generated titles, which repeat the field names."""

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        generated = super().generate(schema, mode)
        _drop_titles(generated)
        for model in [generated, *generated.get("$defs", {}).values()]:
            _put_type_first(model)
        return generated

    def encode_default(self, dft: Any) -> Any:
        """Show a default as it is written in a job file, not as Python keeps it."""
        return str(dft) if isinstance(dft, Duration | ByteSize) else super().encode_default(dft)


def _put_type_first(model: dict[str, Any]) -> None:
    """Make `type` the first property of a section, as in a job file."""
    fields = model.get("properties", {})
    if "type" in fields:
        model["properties"] = {"type": fields.pop("type"), **fields}
    if "type" in model.get("required", ()):
        model["required"] = ["type", *(name for name in model["required"] if name != "type")]


def _drop_titles(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        for child in node.values():
            _drop_titles(child)
    elif isinstance(node, list):
        for child in node:
            _drop_titles(child)


def _allow_references(node: Any, *, key: str = "") -> None:
    """Allow a reference such as `${env:PORT}` in place of numbers, switches and patterned texts."""
    if isinstance(node, list):
        for child in node:
            _allow_references(child)
        return
    if not isinstance(node, dict):
        return
    for name, child in node.items():
        if name not in {"examples", "default", "enum", "const", "required", "discriminator"}:
            _allow_references(child, key=name)
    if key != "type" and _is_checked_scalar(node):
        described = {name: node.pop(name) for name in ("description", "default") if name in node}
        plain = dict(node)
        node.clear()
        node.update({"anyOf": [plain, {"$ref": f"#/$defs/{_REFERENCE}"}], **described})


def _is_checked_scalar(node: dict[str, Any]) -> bool:
    kind = node.get("type")
    if isinstance(kind, str) and kind in _SCALARS:
        return True
    constrained = {"pattern", "maxLength", "minLength", "enum", "const"} & node.keys()
    return (kind == "string" or kind is None) and bool(constrained)


def _allow_text(section: dict[str, Any]) -> None:
    """Accept the short form of a section, a text."""
    named = [name for name in ("description", "default") if name in section]
    kept: dict[str, Any] = {name: section.pop(name) for name in named}
    whole = dict(section)
    section.clear()
    section.update({"anyOf": [whole, {"type": "string"}], **kept})


def _allow_results(body: dict[str, Any], definitions: Mapping[str, Any]) -> None:
    """Accept `operators`, the short form of several results with their sinks."""
    fields = body["properties"]
    result = definitions["ResultOptions"]
    entry = {
        **result,
        "properties": {
            **result["properties"],
            "type": {"const": "aggregate"},
            "sinks": fields["sinks"],
        },
        "required": [*result["required"], "sinks"],
    }
    fields[RESULTS] = {
        "type": "array",
        "description": "In place of operator and sinks: several results of one stream, each with"
        " its own key, where, columns and sinks.",
        "items": entry,
        "minItems": 1,
    }
    alone = ["operator", "sinks"]
    body["required"] = [name for name in body["required"] if name not in alone]
    body["anyOf"] = [{"required": alone}, {"required": [RESULTS]}]


def _choose_by_type(section: dict[str, Any]) -> None:
    """Write a union as `if` its type is this one `then` this section, which every checker knows.

    Editors ignore `discriminator`: they take the branch of a `oneOf` that fits best, and then know
    the types of that branch alone. An operator or a sink that another package brings is a type of
    the schema that `unskew schema --installed` writes.
    """
    mapping = section.pop("discriminator")["mapping"]
    named = {reference: name for name, reference in mapping.items()}
    branches = section.pop("oneOf")
    section["type"] = "object"
    section["properties"] = {"type": {"enum": [named[branch["$ref"]] for branch in branches]}}
    section["required"] = ["type"]
    section["allOf"] = [
        {
            "if": {"properties": {"type": {"const": named[branch["$ref"]]}}, "required": ["type"]},
            "then": branch,
        }
        for branch in branches
    ]
