"""What Spark says of a job's expressions before anything is read, each by its place in the file."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from unskew.config.errors import ExternalError, UsageError
from unskew.config.models.base import find_bare_column
from unskew.config.models.job import Job
from unskew.config.problems.problem import Path, format_path
from unskew.config.specs import OPERATORS
from unskew.config.types.partition_columns import PartitionColumn
from unskew.jobs.operators.base import Operator
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query.decode import decode
from unskew.jobs.query.expressions import add_values
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.prepare_rows import compute_columns, read_partition_columns
from unskew.jobs.query.source import COLUMNS, read_static

_CONDITION = "where"
_TRIED = "_tried"
_NOT_ATOMIC = ArrayType, MapType, StructType, VariantType


def needs_spark_first(job: Job) -> bool:
    """Does the job have SQL or types that only Spark can judge?

    A column by its name lint has judged; whether its type is one to aggregate, it has not.
    """
    if type(make_operator(job.operator)).with_types is not Operator.with_types:
        return True
    texts = [job.where, job.event_time, *(job.select or {}).values()]
    texts += [text for _, text in _list_expressions(job)]
    texts += [column.expression for _, column in _list_partition_columns(job)]
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
    if not problems and not make_operator(job.operator).merges:
        problems += _find_wrong_columns(decoded, job)
    if problems:
        raise UsageError(*problems)


def _list_partition_columns(job: Job) -> list[tuple[Path, PartitionColumn]]:
    """What rows are partitioned by, and where it stands in the file; none of results."""
    if make_operator(job.operator).merges:
        return []
    columns = enumerate(read_partition_columns(job))
    return [(("sinks", 0, "partition_by", index), column) for index, column in columns]


@contextmanager
def name_wrong_expressions(spark: SparkSession, job: Job) -> Iterator[None]:
    """Where Spark or the job fails and expressions are wrong, raise what is wrong with them.

    For some sample records: to check the expressions first would take longer than all the rest.
    """
    try:
        yield
    except (ExternalError, PySparkException):
        check_expressions(spark, job)
        raise


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


def _find_wrong_columns(decoded: DataFrame, job: Job) -> Iterator[str]:
    """Find columns of a table that no single row has, and those that name no folder."""
    operator = make_operator(job.operator)
    try:
        rows = compute_columns(decoded, operator, job)
    except AnalysisException:
        rows = add_values(decoded, job.select) if job.select else decoded
        yield from _find_untried(rows, _list_expressions(job))
        return
    for path, (name, expression) in _list_partition_columns(job):
        text = expression or f"`{name}`"
        wrong = list(_find_untried(rows, [(path, text)]))
        yield from wrong
        kind = "" if wrong else add_values(rows, {_TRIED: text}).schema[_TRIED].dataType
        if isinstance(kind, _NOT_ATOMIC):
            got = f"{format_path(path)}: {name}: one value (got {kind.simpleString().upper()})"
            yield f"{got}: a folder's name holds no more; partition by a field of it"


def _find_untried(rows: DataFrame, texts: list[tuple[Path, str]]) -> Iterator[str]:
    """Find expressions that cannot be tried on a row, such as an aggregate."""
    for path, text in texts:
        try:
            add_values(rows, {_TRIED: text})
        except (AnalysisException, ParseException) as error:
            where = path if path[0] == "sinks" else _find_path(path)
            yield f"{format_path(where)}: {text}: {_shorten(error)}"


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
