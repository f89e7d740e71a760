"""Aggregate calls in an SQL expression: `sum(amount) / count(*)` has two.

Only calls are looked for; what is inside and around them stays the text that the user wrote.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from unskew.grouping.options.suggestions import find_nearest

MERGEABLE = (
    "count",
    "count_if",
    "sum",
    "min",
    "max",
    "avg",
    "mean",
    "first",
    "last",
    "bool_and",
    "every",
    "bool_or",
    "any",
    "some",
    "bit_and",
    "bit_or",
    "bit_xor",
)
"""The aggregates of SQL that merge exactly."""

_DISTINCT = "estimate distinct values: {distinct: ...}"
_QUANTILES = "estimate quantiles: {quantiles: ..., at: [0.5, 0.99]}"
_NEITHER = f"these merge exactly: {', '.join(MERGEABLE)}"
_SUMS = "sum(x), sum(x * x) and count(x) over decimals say the same"
_OTHERS = {
    "any_value": "it may be any value: write first(x), min(x) or max(x)",
    "approx_count_distinct": _DISTINCT,
    "approx_percentile": _QUANTILES,
    "array_agg": _NEITHER,
    "collect_list": _NEITHER,
    "collect_set": "list the smallest: {distinct_values: ..., k: 100}",
    "corr": _SUMS,
    "covar_pop": _SUMS,
    "covar_samp": _SUMS,
    "first_value": "write first(x), the value at the earliest event time",
    "grouping": _NEITHER,
    "histogram_numeric": _QUANTILES,
    "kurtosis": _SUMS,
    "last_value": "write last(x), the value at the latest event time",
    "listagg": _NEITHER,
    "max_by": "write last(x), the value at the latest event time",
    "median": _QUANTILES,
    "min_by": "write first(x), the value at the earliest event time",
    "mode": "list the most frequent values: {top: ..., k: 10}",
    "percentile": _QUANTILES,
    "percentile_approx": _QUANTILES,
    "percentile_cont": _QUANTILES,
    "percentile_disc": _QUANTILES,
    "regr_slope": _SUMS,
    "skewness": _SUMS,
    "std": _SUMS,
    "stddev": _SUMS,
    "stddev_pop": _SUMS,
    "stddev_samp": _SUMS,
    "string_agg": _NEITHER,
    "sum_distinct": _NEITHER,
    "try_avg": "write avg(x)",
    "try_sum": "write sum(x)",
    "var_pop": _SUMS,
    "var_samp": _SUMS,
    "variance": _SUMS,
}
"""Aggregates of Spark that are not offered, and what to write instead."""

_TOKEN = re.compile(
    r"(?P<text>[rR]?'(?:[^'\\]|\\.)*'|[rR]?\"(?:[^\"\\]|\\.)*\")|(?P<quoted>`[^`]*`)"
    r"|(?P<comment>--|/\*)|(?P<word>[^\W\d]\w*)|(?P<mark>[().,])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)


class CallError(ValueError):
    """An expression whose aggregates cannot be merged, and what to write instead."""

    def __init__(self, rule: str, suggestion: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.suggestion = suggestion


class Call(NamedTuple):
    """A call of an aggregate."""

    function: str
    """The function's name in lower case."""
    argument: str


Part = str | Call


class _Token(NamedTuple):
    kind: str
    text: str
    begin: int
    end: int


def parse_calls(text: str) -> list[Part]:
    """The expression in parts: its aggregate calls, and the text around them."""
    tokens = [token for token in _split_tokens(text) if token.kind != "space"]
    parts: list[Part] = []
    written = index = 0
    while index < len(tokens):
        token = tokens[index]
        if not _is_call(tokens, index):
            index += 1
            continue
        close = _find_closing(tokens, index + 1)
        _check_call(tokens, index, close)
        argument = text[tokens[index + 1].end : tokens[close].begin].strip()
        if written < token.begin:
            parts.append(text[written : token.begin])
        parts.append(Call(token.text.lower(), argument))
        written, index = tokens[close].end, close + 1
    if written < len(text):
        parts.append(text[written:])
    if not any(isinstance(part, Call) for part in parts):
        raise _describe_no_call(tokens)
    return parts


def _split_tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "comment":
            raise CallError("a comment in an expression", "write it in a line of YAML: # ...")
        yield _Token(match.lastgroup or "", match.group(), match.start(), match.end())


def _is_call(tokens: list[_Token], index: int) -> bool:
    """Does a call of an aggregate, offered or not, begin here?"""
    token = tokens[index]
    name = token.text.lower()
    called = index + 1 < len(tokens) and tokens[index + 1].text == "("
    is_field = index > 0 and tokens[index - 1].text == "."
    known = name in MERGEABLE or name in _OTHERS
    # `x = any(...)` and `x like any (...)` are comparisons with a list of values.
    compared = index > 0 and tokens[index - 1].text.lower() in {"like", "ilike", "rlike"}
    return token.kind == "word" and called and known and not is_field and not compared


def _find_closing(tokens: list[_Token], begin: int) -> int:
    """Find the bracket that closes the one at `begin`; the file's checks saw it."""
    depth = 0
    for index in range(begin, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if not depth:
            return index
    raise CallError("( is not closed", "add )")


def _check_call(tokens: list[_Token], begin: int, close: int) -> None:
    name = tokens[begin].text.lower()
    if name in _OTHERS:
        raise CallError(f"{name} does not merge exactly", _OTHERS[name])
    inside = tokens[begin + 2 : close]
    for index in range(len(inside)):
        if _is_call(inside, index):
            raise CallError(f"{inside[index].text} inside {name}", "aggregate once")
    if not inside:
        raise CallError(f"{name}() without an argument", f"write {name}(*) or {name}(COLUMN)")
    if inside[0].kind == "word" and inside[0].text.lower() == "distinct":
        raise CallError(f"{name}(distinct ...) does not merge exactly", _DISTINCT)
    star = [token.text for token in inside] == ["*"]
    if star and name != "count":
        raise CallError(f"{name}(*)", f"write {name}(COLUMN)")
    if _has_comma(inside):
        raise CallError(f"{name} with more than one argument", f"write {name}(x)")
    after = tokens[close + 1].text.lower() if close + 1 < len(tokens) else ""
    if after in {"filter", "over", "within", "ignore", "respect"}:
        raise CallError(
            f"{after.upper()} after {name}(...)",
            "write count_if(CONDITION), or sum(if(CONDITION, x, 0))",
        )


def _has_comma(tokens: list[_Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and not depth:
            return True
    return False


def _describe_no_call(tokens: list[_Token]) -> CallError:
    called = [
        token.text.lower()
        for token, after in pairwise(tokens)
        if token.kind == "word" and after.text == "("
    ]
    near = find_nearest(called[0], MERGEABLE) if called else None
    advice = f'did you mean "{near}"?' if near else _NEITHER
    return CallError("no aggregate in it: a column is one value of all the key's records", advice)
