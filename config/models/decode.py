"""How a record's value becomes typed columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from unskew.config.models.base import TEXT_LENGTH_MAX, Location, Model
from unskew.config.types.avro import read_avro_columns
from unskew.config.types.ddl import DdlError, parse_columns
from unskew.grouping.options.broken_rules import make_rule_error

RAW_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
RESERVED_COLUMNS = frozenset(
    [
        *(f"raw_{name}" for name in (*RAW_COLUMNS, "stamped_on_arrival")),
        *("reject_reason", "_attempt", "_corrupt", "_filtered", "_present"),
    ]
)
"""Columns of ours that are beside those of a record."""


CSV_UNSUPPORTED_TYPES = frozenset({"array", "map", "struct", "void"})


def _check_ddl(text: str) -> str:
    try:
        columns = parse_columns(text)
    except DdlError as error:
        raise make_rule_error(
            f"character {error.column} of the Spark DDL schema: {error.rule}", error.suggestion
        ) from None
    _check_names(columns.names)
    return text


def _check_names(columns: Sequence[str]) -> None:
    for name in columns:
        if name.lower() in RESERVED_COLUMNS:
            raise make_rule_error(
                f'the column "{name}" is called as one of Unskew\'s own',
                "leave it out or rename it",
            )


def _check_csv_ddl(text: str) -> str:
    """A field of CSV is one value: Spark fills nothing else from it."""
    columns = parse_columns(_check_ddl(text))
    for name, kind in zip(columns.names, columns.types, strict=True):
        if kind in CSV_UNSUPPORTED_TYPES:
            raise make_rule_error(
                f'CSV has no {kind.upper()} (column "{name}")', "write STRING, or decode JSON"
            )
    return text


def _check_schema_file(text: str, info: ValidationInfo) -> str:
    """An Avro schema that can be read; relative to the job file, kept as an absolute path."""
    folder = (info.context or {}).get("folder", Path.cwd())
    path = Path(folder, text).absolute()
    _check_names(read_avro_columns(path))
    return str(path)


def _check_separator(text: str) -> str:
    if len(text) != 1:
        raise make_rule_error("one character", 'a tab is "\\t"')
    return text


Ddl = Annotated[str, Field(max_length=TEXT_LENGTH_MAX), AfterValidator(_check_ddl)]
CsvDdl = Annotated[str, Field(max_length=TEXT_LENGTH_MAX), AfterValidator(_check_csv_ddl)]
OneCharacter = Annotated[str, AfterValidator(_check_separator)]


class TextDecode(Model):
    """The value is text: one column `value`."""

    type: Literal["text"]
    """The value is UTF-8 text."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the decoded columns."""
        return ("value",)

    @property
    def types(self) -> dict[str, str]:
        """The first word of each column's type, in lower case."""
        return {"value": "string"}


class JsonDecode(Model):
    """The value is a JSON object."""

    type: Literal["json"]
    """The value is a JSON object."""
    ddl: Ddl = Field(alias="schema", examples=["symbol STRING, price DECIMAL(18,4)"])
    """The columns as Spark DDL, such as `symbol STRING, price DECIMAL(18,4)`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the decoded columns."""
        return parse_columns(self.ddl).names

    @property
    def types(self) -> dict[str, str]:
        """The first word of each column's type, in lower case."""
        columns = parse_columns(self.ddl)
        return dict(zip(columns.names, columns.types, strict=True))


class CsvDecode(Model):
    """The value is one line of CSV."""

    type: Literal["csv"]
    """The value is one line of CSV, without a header."""
    ddl: CsvDdl = Field(alias="schema", examples=["symbol STRING, price DECIMAL(18,4)"])
    """The columns in their order, as Spark DDL."""
    separator: OneCharacter = ","
    """Between two fields."""
    quote: OneCharacter = '"'
    """Around a field that holds the separator."""
    escape: OneCharacter = "\\"
    """Before a quote inside quotes."""
    null_text: Annotated[str, Field(max_length=100)] = ""
    """The field's text that stands for a missing value."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the decoded columns."""
        return parse_columns(self.ddl).names

    @property
    def types(self) -> dict[str, str]:
        """The first word of each column's type, in lower case."""
        columns = parse_columns(self.ddl)
        return dict(zip(columns.names, columns.types, strict=True))


class AvroDecode(Model):
    """The value is an Avro record."""

    type: Literal["avro"]
    """The value is one Avro record in binary form. One with a text of more than 64 MiB, a list of
    more than a million, or a decimal of more digits than the schema says, is not decoded."""
    schema_file: Annotated[Location, AfterValidator(_check_schema_file)] = Field(
        examples=["trade.avsc"]
    )
    """The Avro schema as a file (.avsc), relative to the job file."""
    wire: Literal["plain", "confluent"] = "plain"
    """`confluent`: five bytes come first, a zero and the schema's id in the registry. They are cut
    off; the id is not looked at, and every record is read by `schema_file`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the decoded columns."""
        return read_avro_columns(Path(self.schema_file))

    @property
    def types(self) -> dict[str, str]:
        """The first word of each column's type, in lower case; of Avro's only Spark knows them."""
        return {}


Decode = Annotated[TextDecode | JsonDecode | CsvDecode | AvroDecode, Field(discriminator="type")]
