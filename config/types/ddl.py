"""Spark DDL schemas (`symbol STRING, price DECIMAL(18,4)`), checked without Spark.

The grammar is that of `StructType.fromDDL` for column lists: names plain or in backquotes, atomic
types, DECIMAL(p, s), CHAR(n), VARCHAR(n), ARRAY<t>, MAP<k, v>, STRUCT<name: t, ...>, NOT NULL and
COMMENT. A mistake is reported with its character, counted from one.
"""

import re
from typing import NamedTuple, NoReturn

from unskew.grouping.options.suggestions import did_you_mean

DEPTH_MAX = 20
PRECISION_MAX = 38
LENGTH_MAX = 1_000_000_000

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
        "timestamp",
        "timestamp_ntz",
        "timestamp_ltz",
        "string",
        "binary",
        "variant",
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
_SIZED = frozenset({"decimal", "dec", "numeric", "char", "character", "varchar"})
_NESTED = frozenset({"array", "map", "struct"})
_TOKEN = re.compile(
    r"\s+|(?P<name>[A-Za-z_0-9]+)|`(?P<quoted>(?:[^`]|``)+)`"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<mark>[<>(),:])",
    re.ASCII | re.DOTALL,
)


class DdlError(ValueError):
    """What is wrong with a schema, and at which character."""

    def __init__(self, rule: str, column: int, suggestion: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.column = column
        self.suggestion = suggestion


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def parse_columns(text: str) -> tuple[str, ...]:
    """The names of the columns that `text` declares."""
    return _Parser(text).columns()


def _tokens(text: str) -> list[_Token]:
    tokens = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            what = (
                "a quote is not closed"
                if text[place] in "`'\""
                else f"{text[place]!r} is not allowed"
            )
            raise DdlError(what, place + 1, "put unusual names in backquotes")
        if match.lastgroup:
            text_of = match.group(match.lastgroup)
            if match.lastgroup == "quoted":
                text_of = text_of.replace("``", "`")
            tokens.append(_Token(match.lastgroup, text_of, place + 1))
        place = match.end()
    return [*tokens, _Token("end", "the end", len(text) + 1)]


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0

    def columns(self) -> tuple[str, ...]:
        if self._peek().kind == "end":
            raise DdlError("it is empty", 1, 'write "name TYPE, name TYPE"')
        names = self._fields(0, colon=False)
        if self._peek().kind != "end":
            self._fail("a comma or the end")
        return tuple(names)

    def _fields(self, depth: int, *, colon: bool) -> list[str]:
        """`name type` or, in a struct, `name: type`, with commas between."""
        names: list[str] = []
        while True:
            token = self._take()
            if token.kind not in {"name", "quoted"}:
                self._fail("the name of a column", token)
            if token.text.lower() in {name.lower() for name in names}:
                raise DdlError(
                    f'the column "{token.text}" is there twice', token.column, "rename one"
                )
            names.append(token.text)
            if self._is(":") and (colon or self._peek_type_follows()):
                self._take()
            self._type(depth)
            self._column_end()
            if not self._is(","):
                return names
            self._take()

    def _peek_type_follows(self) -> bool:
        # Spark also takes `name: type` at the top level.
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind == "name"

    def _column_end(self) -> None:
        if self._word("not") and not self._word("null"):
            self._fail("NULL after NOT")
        if self._word("comment"):
            token = self._take()
            if token.kind != "text":
                self._fail("a text in quotes after COMMENT", token)

    def _type(self, depth: int) -> None:
        token = self._take()
        if depth > DEPTH_MAX:
            raise DdlError(f"types nested deeper than {DEPTH_MAX}", token.column, "flatten it")
        if token.kind != "name":
            self._fail("a type", token)
        name = token.text.lower()
        if name in _SIZED:
            self._sized(name)
        elif name in _NESTED:
            self._nested(name, depth)
        elif name not in _ATOMIC:
            known = sorted(word.upper() for word in _ATOMIC | _SIZED | _NESTED)
            near = _ELSEWHERE.get(name)
            advice = f'did you mean "{near}"?' if near else did_you_mean(token.text.upper(), known)
            raise DdlError(f'no type "{token.text}"', token.column, advice)

    def _nested(self, name: str, depth: int) -> None:
        self._expect("<")
        if name == "struct":
            if not self._is(">"):
                self._fields(depth + 1, colon=True)
        else:
            self._type(depth + 1)
            if name == "map":
                self._expect(",")
                self._type(depth + 1)
        self._expect(">")

    def _sized(self, name: str) -> None:
        decimal = name in {"decimal", "dec", "numeric"}
        if not self._is("("):
            if decimal:
                return
            self._fail(f"a length: {name.upper()}(n)")
        self._take()
        first = self._number(1, PRECISION_MAX if decimal else LENGTH_MAX)
        if decimal and self._is(","):
            self._take()
            self._number(0, first)
        self._expect(")")

    def _number(self, low: int, high: int) -> int:
        token = self._take()
        if not token.text.isdecimal() or len(token.text) > 12:
            self._fail("a whole number", token)
        if not low <= int(token.text) <= high:
            raise DdlError(
                f"a number from {low} to {high}, not {token.text}", token.column, "change it"
            )
        return int(token.text)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _is(self, mark: str) -> bool:
        token = self._peek()
        return token.kind == "mark" and token.text == mark

    def _word(self, word: str) -> bool:
        """Take `word` if it is next."""
        token = self._peek()
        found = token.kind == "name" and token.text.lower() == word
        self._next += found
        return found

    def _take(self) -> _Token:
        token = self._peek()
        self._next += token.kind != "end"
        return token

    def _expect(self, mark: str) -> None:
        token = self._take()
        if token.kind != "mark" or token.text != mark:
            self._fail(f'"{mark}"', token)

    def _fail(self, wanted: str, token: _Token | None = None) -> NoReturn:
        found = token or self._peek()
        got = found.text if found.kind == "end" else f'"{found.text}"'
        raise DdlError(
            f"expected {wanted}, found {got}", found.column, 'write "name TYPE, name TYPE"'
        )
