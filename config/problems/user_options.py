"""Options of a user's own class or function, in a section that holds them by name in one field.

Their errors are raised as errors of the section, each at its option: so they are found in the file
and described as those of the options that the section declares itself.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from unskew.config.problems.schema_walk import list_yaml_fields
from unskew.grouping.options.broken_rules import make_rule_error

KNOWN = "known"
"""In an error's context: the options that there are, and what each is for."""

M = TypeVar("M", bound=BaseModel)


def validate_options(model: type[M], field: str, options: Mapping[str, Any]) -> M:
    """The options in `field` as a `model`; else a ValidationError of the section with the field."""
    try:
        return model.model_validate_json(json.dumps(options))
    except ValidationError as error:
        errors = error.errors(include_url=False)
    known = {name: each.description or "" for name, each in list_yaml_fields(model).items()}
    raise _move_into(field, errors, known)


def make_field_error(field: str, value: str, rule: str, suggestion: str) -> ValidationError:
    """Make the error of a section whose `field` breaks a rule that needs other fields."""
    kind = make_rule_error(rule, suggestion)
    return ValidationError.from_exception_data(
        field, [InitErrorDetails(type=kind, loc=(field,), input=value)]
    )


def _move_into(
    field: str, errors: Iterable[ErrorDetails], known: Mapping[str, str]
) -> ValidationError:
    moved = []
    for error in errors:
        # Deeper names are those of other models.
        context = error.get("ctx", {}) | ({KNOWN: known} if len(error["loc"]) == 1 else {})
        kind = PydanticCustomError(error["type"], error["msg"], context)
        moved.append(InitErrorDetails(type=kind, loc=(field, *error["loc"]), input=error["input"]))
    return ValidationError.from_exception_data(field, moved)
