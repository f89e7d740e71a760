"""JAAS lines, `LOGIN_MODULE required NAME="VALUE" ...;`, as Kafka's client reads them.

A value may hold a password, so no message of this module repeats a part of a line.
"""

import re

from unskew.config.types.secrets import SHORTEST_REDACTED, holds_secret

RULE = 'a JAAS line: LOGIN_MODULE required NAME="VALUE" ...;'
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_JAAS = re.compile(r"jaas[._]config$", re.IGNORECASE)
_OPTION = re.compile(
    r"(?<![\w.$-])([\w.$-]+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|[^\s;]+)", re.DOTALL
)
_TOKEN = re.compile(
    r"\s+|(?P<word>[^\s\"'=;]+)|(?P<quoted>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<mark>[=;])",
    re.DOTALL,
)
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_SEPARATORS = re.compile(r"[\s\"'=;\\]+")


def is_jaas(name: str) -> bool:
    """Is an option of this name a JAAS line?"""
    return bool(_JAAS.search(name))


def read_jaas_secrets(text: str) -> dict[str, str]:
    """The options of a line that hold secrets, without their quotes.

    >>> read_jaas_secrets('Plain required username="me" password="a b" user_me=c;')
    {'password': 'a b', 'user_me': 'c'}
    """
    return {
        name: value.strip("\"'")
        for name, value in _OPTION.findall(text)
        if holds_secret(name) or name.startswith("user_")
    }


def read_jaas_options(text: str) -> dict[str, str]:
    r"""All options of a line as the client reads them, without quotes and escapes.

    >>> read_jaas_options(r'Plain required username="me" password="a \"b";')
    {'username': 'me', 'password': 'a "b'}
    """
    return {name: _unquote(value) for name, value in _OPTION.findall(text)}


def list_secret_parts(text: str) -> set[str]:
    """List the texts of a secret that the client's errors may print: all, and what is quoted."""
    return {text, *(part for part in _SEPARATORS.split(text) if len(part) >= SHORTEST_REDACTED)}


def insert(before: str, value: str) -> str:
    """`value` as it must be written behind `before`, so that the client reads it unchanged."""
    escaped = "".join(_ESCAPES.get(char, char) for char in value)
    quote = _open_quote(before)
    if quote:
        return escaped.replace(quote, f"\\{quote}")
    if before.rstrip().endswith("="):
        return '"' + escaped.replace('"', '\\"') + '"'
    return value


def problem(text: str) -> str:
    """Why the client could not read a line; empty if it can."""
    kinds: list[str] = []
    start = 0
    while start < len(text):
        match = _TOKEN.match(text, start)
        if match is None:
            return f"{RULE} a quote is not closed"
        if match.lastgroup == "mark":
            kinds.append(match.group())
        elif match.lastgroup == "quoted":
            kinds.append("value")
        elif match.lastgroup == "word":
            kinds.append("flag" if match.group().lower() in _FLAGS else "word")
        start = match.end()
    if kinds[:2] != ["word", "flag"]:
        return RULE
    if kinds[-1] != ";":
        return f"{RULE} the semicolon is missing"
    options = kinds[2:-1]
    whole = len(options) % 3 == 0 and all(
        options[index] == "word" and options[index + 1] == "=" and options[index + 2] != ";"
        for index in range(0, len(options), 3)
    )
    return "" if whole else RULE


def _unquote(value: str) -> str:
    if value[0] not in "\"'":
        return value
    return _ESCAPED.sub(lambda escape: _UNESCAPED.get(escape[1], escape[1]), value[1:-1])


def _open_quote(text: str) -> str:
    """The quote that is open at the end of `text`; empty if none is."""
    quote, escaped = "", False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\" and quote:
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
    return quote
