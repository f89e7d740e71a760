"""Base model (strict, frozen, unknown keys rejected) and validated text types."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from unskew.config.types.secrets import Secret, holds_secret
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.suggestions import suggest_nearest

TEXT_LENGTH_MAX = 20_000
PATH_LENGTH_MAX = 4_096
CONTRADICTION = "contradiction"
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_CREDENTIALS = re.compile(r"//[^/@\s]*:[^/@\s]*@")
_TEXT_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_BARE = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*))\s*")
_JAVA = re.compile(r"\b((?:try_)?reflect|java_method)`?\s*\(", re.IGNORECASE)
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


class Model(BaseModel):
    """A section of a job file."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
        serialize_by_alias=True,
        ser_json_inf_nan="constants",
    )

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of fields of which at most one may be given."""
    needed: ClassVar[tuple[str, ...]] = ()
    """The group of these of which exactly one field must be given, if any."""

    @model_validator(mode="after")
    def _one_of_each_group(self) -> Self:
        for group in self.exclusive:
            names = [name for name in group if getattr(self, name) is not None]
            if len(names) > 1:
                raise make_contradiction(f"only one of {' and '.join(names)} may be given")
            if not names and group == self.needed:
                raise make_contradiction(f"one of {', '.join(group)} is missing")
        return self


M = TypeVar("M", bound=BaseModel)


def make_typed_model(
    class_name: str, base: type[M], tag: str, about: str, description: str | None = None
) -> type[M]:
    """A subclass of `base` that is chosen by `type: tag`; `description` replaces its docstring."""
    namespace = {
        "__module__": base.__module__,
        "__doc__": description or inspect.getdoc(base),
        "__annotations__": {"type": Literal[tag]},
        "type": Field(description=about),
        # The fields' docstrings are known from `base`; to look for them in the source costs 20 ms.
        "model_config": ConfigDict(use_attribute_docstrings=False),
    }
    metaclass: Any = type(base)
    return cast("type[M]", metaclass(class_name, (base,), namespace))


def make_contradiction(rule: str) -> PydanticCustomError:
    """Fields that contradict each other; the loader reports each with its position in the file."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "kind": CONTRADICTION})


def topic(text: str) -> str:
    """A Kafka topic's name, as the broker checks it."""
    if text in {".", ".."} or len(text) > 249 or not _TOPIC.fullmatch(text):
        raise make_rule_error("a topic: up to 249 letters, digits, dots, dashes and underscores")
    return text


def servers(text: str) -> str:
    """`host:port`, several of them with commas between."""
    for server in text.split(","):
        match = _SERVER.fullmatch(server.strip())
        if match is None or not 1 <= int(match.group(2)) <= 65_535:
            raise make_rule_error("host:port, with commas between several", "e.g. 127.0.0.1:9092")
    return text


def location(text: str) -> str:
    """A path or a URI that Spark can open."""
    if _CREDENTIALS.search(text):
        raise make_rule_error("a path or a URI without a password", "set it under spark", hide=True)
    if not text.strip() or any(not char.isprintable() for char in text):
        raise make_rule_error("a path or a URI")
    return text


def expression(text: str) -> str:
    """An SQL expression over the decoded columns: not empty, brackets and quotes closed."""
    if not text.strip():
        raise make_rule_error("an SQL expression over the decoded columns", "name a column")
    unclosed = _find_unclosed(text)
    if unclosed:
        raise make_rule_error(f"an SQL expression over the decoded columns: {unclosed}")
    called = _JAVA.search(_TEXT_LITERAL.sub("''", text))
    if called:
        raise make_rule_error(
            f"an SQL expression without {called.group(1).lower()}, which calls any method of Java",
            "write it with Spark's other functions",
        )
    return text


def _find_unclosed(text: str) -> str:
    closing = {")": "(", "]": "["}
    opened: list[str] = []
    quote, escaped = "", False
    for char in text:
        if quote:
            if escaped:
                escaped = False
            elif char == "\\" and quote != "`":
                escaped = True
            elif char == quote:
                quote = ""
        elif char in "'\"`":
            quote = char
        elif char in "([":
            opened.append(char)
        elif char in closing and (not opened or opened.pop() != closing[char]):
            return f"{char} closes nothing"
    if quote:
        return f"{quote} is not closed"
    return f"{opened[-1]} is not closed" if opened else ""


Topic = Annotated[str, AfterValidator(topic)]
Servers = Annotated[str, Field(max_length=PATH_LENGTH_MAX), AfterValidator(servers)]
Location = Annotated[str, Field(max_length=PATH_LENGTH_MAX), AfterValidator(location)]
Expression = Annotated[str, Field(max_length=TEXT_LENGTH_MAX), AfterValidator(expression)]


def find_bare_column(text: str) -> str | None:
    """The column that an expression is, if it is no more than a column's name."""
    match = _BARE.fullmatch(text)
    return (match.group(1) or match.group(2)) if match else None


def is_expression(field: FieldInfo) -> bool:
    """Is a field's type `Expression`, or `Expression | None`?"""
    optional = [mark for kind in get_args(field.annotation) for mark in get_args(kind)[1:]]
    checks = [
        mark.func for mark in (*field.metadata, *optional) if isinstance(mark, AfterValidator)
    ]
    return expression in checks


def _to_option_text(value: object) -> str | Secret:
    """Spark and Kafka take every option as text; YAML may write it as what it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | Secret):
        return value
    raise make_rule_error("a text, a number, true or false")


OptionText = Annotated[
    str | Secret,
    PlainValidator(_to_option_text, json_schema_input_type=str | bool | int | float),
    PlainSerializer(str, return_type=str),
]


def holds_option_texts(field: FieldInfo) -> bool:
    """Does a field take options by their names, each an `OptionText`?"""
    return get_args(field.annotation)[1:] == (OptionText,)


def hide_secrets(options: dict[str, str | Secret]) -> dict[str, str | Secret]:
    """Copy the options, with those under a secret's name wrapped."""
    return {
        key: Secret(value) if isinstance(value, str) and holds_secret(key) else value
        for key, value in options.items()
    }


def make_key_check(
    ours: dict[str, str], known: frozenset[str], prefix: str
) -> Callable[[str], str]:
    """Checks an option's name: ours are refused with the reason, others need the prefix."""
    lowered = {name.lower(): reason for name, reason in ours.items()}

    def check(name: str) -> str:
        if name.lower() in lowered:
            raise make_rule_error("set by Unskew", lowered[name.lower()])
        if name in known or (name.startswith(prefix) and len(name) > len(prefix)):
            return name
        raise make_rule_error(
            f"options begin with {prefix}",
            suggest_nearest(name, [f"{prefix}{name}", *sorted(known)]),
        )

    return check
