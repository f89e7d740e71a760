"""SQL expressions of a job file, read without Spark: the columns they name, and what is no SQL.

sqlglot reads Spark's dialect, but not to the letter: it refuses some of what Spark takes
(`x >>> 1`) and takes some of what Spark refuses. So what it cannot read is a *doubt*, of which
`unskew lint` warns; an error is only what ends or begins with an operator, which Spark refuses too.
A column that it reads is one for Spark as well: a test compares on the examples of all of Spark's
functions.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from unskew.grouping.options.printed import show

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.errors import ParseError

_SELECT = "SELECT "
"""Before an expression: by itself `comment > 1` would be a statement."""
WITHOUT_BRACKETS = frozenset(
    {
        "current_date",
        "current_time",
        "current_timestamp",
        "current_user",
        "grouping__id",
        "localtimestamp",
        "session_user",
        "user",
    }
)
"""What Spark takes for a function where no column has the name."""
_COMMENTS = ("--", "/*")
_NEEDS_RIGHT = "-+/%=<&|^~!,"
_NEEDS_LEFT = "/%=<>&|^,"


class Reading(NamedTuple):
    """An expression, as far as it can be read without Spark."""

    columns: tuple[str, ...] = ()
    """The columns that it names, as it writes them; of `a.b` the first part, and each once."""
    error: str = ""
    """Why Spark refuses it."""
    doubt: str = ""
    """Why Spark may refuse it."""


@lru_cache(maxsize=1024)
def read_expression(text: str) -> Reading:
    """Read an expression whose brackets and quotes are closed."""
    # To import it takes a tenth of a second: most jobs name columns and nothing else.
    from sqlglot import exp, parse_one  # noqa: PLC0415
    from sqlglot.errors import ParseError, SqlglotError  # noqa: PLC0415

    try:
        tree = parse_one(_SELECT + text, read="spark")
    except ParseError as error:
        return _describe(text, error)
    except (SqlglotError, RecursionError):
        return Reading(doubt="it cannot be read")
    if not _is_expression(tree):
        return Reading(doubt="it is more than an expression")
    if tree.expressions[0].find(exp.Query):
        return Reading()  # a subquery has columns of its own
    names = dict.fromkeys(column.parts[0].name for column in tree.find_all(exp.Column))
    return Reading(tuple(name for name in names if name.lower() not in WITHOUT_BRACKETS))


def _is_expression(tree: "exp.Expr") -> bool:
    """Is it a SELECT of a single expression, and of nothing else?"""
    given = [name for name, value in tree.args.items() if value]
    return given == ["expressions"] and len(tree.expressions) == 1


def _describe(text: str, error: "ParseError") -> Reading:
    bare = text.strip()
    if not any(mark in bare for mark in _COMMENTS):
        # `x::array<int>` ends with a bracket.
        if bare[-1] in _NEEDS_RIGHT or (bare[-1] == ">" and "<" not in bare):
            return Reading(error=f"nothing follows {bare[-1]} at its end")
        if bare[0] in _NEEDS_LEFT:
            return Reading(error=f"nothing is before {bare[0]} at its beginning")
    return Reading(doubt=f"it cannot be read at {show(error.errors[0]['highlight'])}")
