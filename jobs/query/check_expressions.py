"""What Spark says of a job's expressions before anything is read, each by its place in the file."""

from collections.abc import Iterator

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.config.errors import UsageError
from unskew.config.models.base import find_bare_column
from unskew.config.models.job import Job
from unskew.config.problems.problem import Path, format_path
from unskew.config.specs import OPERATORS
from unskew.jobs.operators.base import Operator
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query.decode import decode
from unskew.jobs.query.expressions import add_values
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.source import COLUMNS, read_static

_CONDITION = "where"


def needs_spark_first(job: Job) -> bool:
    """Does the job have SQL or types that only Spark can judge?

    A column by its name lint has judged; whether its type is one to aggregate, it has not.
    """
    if type(make_operator(job.operator)).with_types is not Operator.with_types:
        return True
    texts = [job.where, job.event_time, *(job.select or {}).values()]
    texts += [text for _, text in _list_expressions(job)]
    return any(text is not None and find_bare_column(text) is None for text in texts)


def check_expressions(spark: SparkSession, job: Job) -> None:
    """UsageError has every expression that Spark cannot evaluate, and every wrong type."""
    decoded = decode(read_static(spark, []), job.decode, COLUMNS)
    own: list[tuple[Path, str]] = [] if job.where is None else [(("where",), job.where)]
    own += [(("select", name), text) for name, text in (job.select or {}).items()]
    problems = list(_find_problems(decoded, own))
    if not problems:
        rows = add_values(decoded, job.select) if job.select else decoded
        others = [(_find_path(path), text) for path, text in _list_expressions(job)]
        problems += _find_problems(rows, [(("event_time",), job.event_time), *others])
    if not problems and make_operator(job.operator).merges:
        problems += _find_wrong_results(decoded, job)
    if problems:
        raise UsageError(*problems)


def _list_expressions(job: Job) -> list[tuple[Path, str]]:
    """The operator's expressions in the file, and those of its class where a package brings it."""
    given = job.operator.expressions()
    if job.operator.type in OPERATORS.list_shipped_names():
        return given
    operator = make_operator(job.operator)
    known = {text for _, text in given}
    texts = (operator.keys, operator.inputs, operator.reject_rules)
    own = dict.fromkeys(text for each in texts for text in each.values() if text not in known)
    return [*given, *((("type",), text) for text in own)]


def _find_path(path: Path) -> Path:
    """Find where an operator's expression stands in the file."""
    return ("operators", *path[1:]) if path[0] == "results" else ("operator", *path)


def _find_problems(rows: DataFrame, texts: list[tuple[Path, str]]) -> Iterator[str]:
    for path, text in texts:
        try:
            kind = rows.select(sf.expr(text)).schema.fields[0].dataType.simpleString()
        except (AnalysisException, ParseException) as error:
            yield f"{format_path(path)}: {text}: {_shorten(error)}"
            continue
        if path[0] != "select" and path[-1] == _CONDITION and kind != "boolean":
            got = f"{format_path(path)}: {text}: a condition (got {kind.upper()})"
            yield f"{got}; write a comparison"


def _find_wrong_results(decoded: DataFrame, job: Job) -> Iterator[str]:
    """Find what is wrong with a result's columns: they see the totals and nothing else."""
    prepared, operator = prepare_records(decoded, job)
    if not operator.native:
        return
    totals = prepared.groupBy(*operator.keys).agg(
        *[sf.expr(text).alias(name) for name, text in operator.direct.items()]
    )
    parts: list[tuple[Path, Operator]] = [
        (("operators", index), part) for index, part in enumerate(operator.parts.values())
    ]
    for path, part in parts or [(("operator",), operator)]:
        for name, text in part.final.items():
            try:
                _ = totals.select(sf.expr(text)).schema
            except (AnalysisException, ParseException) as error:
                where = format_path((*path, "columns", name))
                yield f"{where}: outside of its aggregates: {_shorten(error)}"


def _shorten(error: AnalysisException) -> str:
    """The first sentences of Spark's message, without its class and its plan."""
    text = (error.getMessage() or str(error)).split("SQLSTATE", maxsplit=1)[0]
    text = text.partition("\n\n")[0].partition("] ")[2] or text
    return " ".join(text.split())[:300].rstrip(" .;")
