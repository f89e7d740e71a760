"""Spark DDL schemas (`symbol STRING, price DECIMAL(18,4)`), checked without Spark.

The grammar is what Spark 4.2's `from_json` and `from_csv` take as a list of columns: `name TYPE`
with NOT NULL and COMMENT; names plain or in backquotes; of the types those that they can fill.
What Spark refuses is an error, at its character, counted from one. What cannot be judged without
Spark, such as the name of a collation, is a doubt: `unskew lint` prints a warning.
"""

import re
from typing import NamedTuple, NoReturn

from unskew.grouping.options.suggestions import suggest_nearest

DEPTH_MAX = 20
PRECISION_MAX = 38
TIME_PRECISION_MAX = 6

_ATOMIC = frozenset(
    [
        "boolean",
        "tinyint",
        "byte",
        "smallint",
        "short",
        "int",
        "integer",
        "bigint",
        "long",
        "float",
        "real",
        "double",
        "date",
        "timestamp_ntz",
        "timestamp_ltz",
        "binary",
        "variant",
        "void",
    ]
)
# What other languages call them.
_ELSEWHERE = {
    "str": "STRING",
    "text": "STRING",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "datetime": "TIMESTAMP",
    "bytes": "BINARY",
    "list": "ARRAY",
    "object": "STRUCT",
    "dict": "MAP",
}
_NOT_DECODED = {
    **dict.fromkeys(("char", "character", "varchar"), "write STRING: no length is checked"),
    **dict.fromkeys(("geometry", "geography"), "write STRING or BINARY"),
}
"""Types of tables that `from_json` and `from_csv` refuse to fill."""
_DECIMAL = frozenset({"decimal", "dec", "numeric"})
_NESTED = frozenset({"array", "map", "struct"})
_OTHERS = frozenset({"interval", "string", "time", "timestamp"})
_INTERVALS = (("year", "month"), ("day", "hour", "minute", "second"))
_COLLATION = re.compile(
    r"(UTF8_BINARY|UTF8_LCASE|UNICODE|[A-Z]{2,3}(_[A-Z]{4})?(_[A-Z]{2,3})?)(_(CI|CS|AI|AS|RTRIM))*",
    re.IGNORECASE | re.ASCII,
)
_TOKEN = re.compile(
    r"\s+|--[^\n]*\n|/\*.*?\*/|(?P<name>\w+)|`(?P<quoted>(?:[^`]|``)+)`"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<mark>[<>(),:.])",
    re.DOTALL,
)
# Numbers to Spark, also where letters follow: `7`, `7L`, `7e5`.
_NUMBER = re.compile(r"[0-9]+(E[0-9]+)?([LSYDF]|BD)?", re.IGNORECASE | re.ASCII)
_COLUMNS = 'write "name TYPE, name TYPE"'


class DdlError(ValueError):
    """An error in a schema, and the character where it is."""

    def __init__(self, rule: str, column: int, suggestion: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.column = column
        self.suggestion = suggestion


class Doubt(NamedTuple):
    """A doubt that only Spark can settle, and the character where it is."""

    rule: str
    column: int
    suggestion: str


class Columns(NamedTuple):
    """The columns that a schema declares."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    """The first word of each one's type, in lower case."""
    doubts: tuple[Doubt, ...]


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def parse_columns(text: str) -> Columns:
    """The columns that `text` declares; DdlError says what Spark would refuse."""
    return _Parser(text).columns()


def _read_tokens(text: str) -> list[_Token]:
    tokens = []
    start = 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None:
            raise _describe_unreadable(text, start)
        if match.lastgroup:
            token_text = match.group(match.lastgroup)
            if match.lastgroup == "quoted":
                token_text = token_text.replace("``", "`")
            tokens.append(_Token(match.lastgroup, token_text, start + 1))
        start = match.end()
    return [*tokens, _Token("end", "the end", len(text) + 1)]


def _describe_unreadable(text: str, start: int) -> DdlError:
    if text[start] in "`'\"":
        return DdlError("a quote is not closed", start + 1, "put unusual names in backquotes")
    if text.startswith("--", start):
        # Unskew adds a column behind the schema, which the comment would hide.
        return DdlError("a comment at the end", start + 1, "move it to a line before the last")
    rule = f"{text[start]!r} is not allowed"
    return DdlError(rule, start + 1, "put unusual names in backquotes")


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _read_tokens(text)
        self._next = 0
        self._doubts: list[Doubt] = []

    def columns(self) -> Columns:
        if self._peek().kind == "end":
            raise DdlError("it is empty", 1, _COLUMNS)
        names: list[str] = []
        types: list[str] = []
        while True:
            name = self._parse_name()
            if name.text.lower() in {known.lower() for known in names}:
                rule = f'the column "{name.text}" is a duplicate'
                raise DdlError(rule, name.column, "rename one")
            names.append(name.text)
            if self._is(":"):
                raise DdlError('":" after a column\'s name', self._peek().column, "remove it")
            types.append(self._parse_type(0))
            self._parse_column_end()
            if not self._is(","):
                break
            self._take()
        if self._peek().kind != "end":
            self._fail("a comma or the end")
        return Columns(tuple(names), tuple(types), tuple(self._doubts))

    def _parse_name(self) -> _Token:
        token = self._take()
        if token.kind not in {"name", "quoted"}:
            self._fail("the name of a column", token)
        if token.kind == "name" and (not token.text.isascii() or _NUMBER.fullmatch(token.text)):
            rule = f'the name "{token.text}" needs backquotes'
            raise DdlError(rule, token.column, f"write `{token.text}`")
        return token

    def _parse_fields(self, depth: int) -> None:
        """`name: type` or `name type`, with commas between."""
        while True:
            self._parse_name()
            if self._is(":"):
                self._take()
            self._parse_type(depth)
            self._parse_column_end()
            if not self._is(","):
                return
            self._take()

    def _parse_column_end(self) -> None:
        if self._take_word("not") and not self._take_word("null"):
            self._fail("NULL after NOT")
        if self._take_word("comment"):
            self._take_word("r")  # a raw text
            token = self._take()
            if token.kind != "text":
                self._fail("a text in quotes after COMMENT", token)
            while self._peek().kind == "text":  # texts side by side are one
                self._take()

    def _parse_type(self, depth: int) -> str:
        """Read a type; its first word."""
        token = self._take()
        if depth > DEPTH_MAX:
            raise DdlError(f"types nested deeper than {DEPTH_MAX}", token.column, "flatten it")
        if token.kind != "name":
            self._fail("a type", token)
        name = token.text.lower()
        if name in _DECIMAL:
            self._parse_decimal()
        elif name in _NESTED:
            self._parse_nested(name, depth)
        elif name in _OTHERS:
            {
                "interval": self._parse_interval,
                "string": self._parse_string,
                "time": self._parse_time,
                "timestamp": self._parse_timestamp,
            }[name]()
        elif name not in _ATOMIC:
            raise _describe_unknown_type(token)
        return name

    def _parse_nested(self, name: str, depth: int) -> None:
        self._expect("<")
        if name == "struct":
            if not self._is(">"):
                self._parse_fields(depth + 1)
        else:
            self._parse_type(depth + 1)
            if name == "map":
                self._expect(",")
                self._parse_type(depth + 1)
        self._expect(">")

    def _parse_decimal(self) -> None:
        if not self._is("("):
            return
        self._take()
        precision = self._parse_number(0, PRECISION_MAX)
        if self._is(","):
            self._take()
            self._parse_number(0, precision)
        self._expect(")")

    def _parse_interval(self) -> None:
        """INTERVAL, or with a unit, or with two of one family, the larger first."""
        first = self._peek().text.lower()
        units = next((family for family in _INTERVALS if first in family), None)
        if units is None:
            return
        self._take()
        if self._take_word("to"):
            last = self._take()
            if last.text.lower() not in units[units.index(first) + 1 :]:
                rule = f"no interval goes from {first.upper()} to {last.text.upper()}"
                raise DdlError(rule, last.column, "the larger unit first: DAY TO SECOND")

    def _parse_string(self) -> None:
        if not self._take_word("collate"):
            return
        token = self._take()
        while self._is("."):  # system.builtin.UNICODE
            self._take()
            token = self._take()
        if token.kind not in {"name", "quoted"}:
            self._fail("the name of a collation", token)
        if not _COLLATION.fullmatch(token.text):
            rule = f'Unskew does not know the collation "{token.text}", Spark may'
            self._doubts.append(Doubt(rule, token.column, "e.g. UTF8_LCASE or UNICODE_CI"))

    def _parse_time(self) -> None:
        if self._is("("):
            self._take()
            self._parse_number(0, TIME_PRECISION_MAX)
            self._expect(")")
        if self._take_word("without"):
            self._take_words("time", "zone")

    def _parse_timestamp(self) -> None:
        if self._take_word("without"):
            self._take_words("time", "zone")
        elif self._take_word("with"):
            self._take_words("local", "time", "zone")

    def _parse_number(self, low: int, high: int) -> int:
        token = self._take()
        if not (token.text.isascii() and token.text.isdecimal()) or len(token.text) > 12:
            self._fail("a whole number", token)
        if not low <= int(token.text) <= high:
            rule = f"a number from {low} to {high}, not {token.text}"
            raise DdlError(rule, token.column, "change it")
        return int(token.text)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _is(self, mark: str) -> bool:
        token = self._peek()
        return token.kind == "mark" and token.text == mark

    def _take_word(self, word: str) -> bool:
        """Take `word` if it is next."""
        token = self._peek()
        is_next = token.kind == "name" and token.text.lower() == word
        self._next += is_next
        return is_next

    def _take_words(self, *words: str) -> None:
        for word in words:
            if not self._take_word(word):
                self._fail(word.upper())

    def _take(self) -> _Token:
        token = self._peek()
        self._next += token.kind != "end"
        return token

    def _expect(self, mark: str) -> None:
        token = self._take()
        if token.kind != "mark" or token.text != mark:
            self._fail(f'"{mark}"', token)

    def _fail(self, wanted: str, token: _Token | None = None) -> NoReturn:
        seen = token or self._peek()
        what = seen.text if seen.kind == "end" else f'"{seen.text}"'
        raise DdlError(f"expected {wanted}, found {what}", seen.column, _COLUMNS)


def _describe_unknown_type(token: _Token) -> DdlError:
    name = token.text.lower()
    if name in _NOT_DECODED:
        return DdlError(
            f"no record is decoded into {name.upper()}", token.column, _NOT_DECODED[name]
        )
    known = sorted(word.upper() for word in _ATOMIC | _DECIMAL | _NESTED | _OTHERS)
    other = _ELSEWHERE.get(name)
    advice = f'did you mean "{other}"?' if other else suggest_nearest(token.text.upper(), known)
    return DdlError(f'no type "{token.text}"', token.column, advice)
