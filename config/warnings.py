"""Warnings about a valid job, which `unskew lint` prints."""

from collections.abc import Iterator
from typing import NamedTuple

from unskew.config.models.base import find_bare_column
from unskew.config.models.decode import CsvDecode, JsonDecode
from unskew.config.models.job import Job
from unskew.config.problems.problem import Path
from unskew.config.types.ddl import parse_columns
from unskew.config.types.secrets import find_java_option_secrets, reveal
from unskew.config.types.sql import read_expression

_EXECUTOR_OPTIONS = ("spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions")
_AUTHENTICATION = (
    "spark.authenticate",
    "spark.authenticate.secret",
    "spark.authenticate.secret.file",
)


class JobWarning(NamedTuple):
    """A warning, reported at `path` of the job."""

    path: Path
    rule: str
    suggestion: str


def warnings(job: Job) -> Iterator[JobWarning]:
    """Yield every warning of a job."""
    if isinstance(job.decode, JsonDecode | CsvDecode):
        for doubt in parse_columns(job.decode.ddl).doubts:
            rule = f"character {doubt.column} of the Spark DDL schema: {doubt.rule}"
            yield JobWarning(("decode", "schema"), rule, doubt.suggestion)
    yield from _check_expressions(job)
    yield from _check_cluster(job)


def _check_expressions(job: Job) -> Iterator[JobWarning]:
    """Expressions that cannot be read here, though Spark may."""
    texts: list[tuple[Path, str]] = [(("event_time",), job.event_time)]
    texts += [] if job.where is None else [(("where",), job.where)]
    texts += [(("select", name), text) for name, text in (job.select or {}).items()]
    texts += [(("operator", *path), text) for path, text in job.operator.expressions()]
    for path, text in texts:
        if find_bare_column(text) is None and (doubt := read_expression(text).doubt):
            advice = "Spark says for sure when the job starts"
            yield JobWarning(path, f"{text}: this may be no SQL: {doubt}", advice)


def _check_cluster(job: Job) -> Iterator[JobWarning]:
    """Warn of what a master elsewhere opens to other users, or closes to the job's executors."""
    settings = reveal(job.spark)
    master = settings.get("spark.master", "local")
    if master.startswith("local"):
        return
    if master.startswith("spark://") and not any(name in settings for name in _AUTHENTICATION):
        yield JobWarning(
            ("spark", "spark.master"),
            "whoever reaches the driver's ports may run code in it: a standalone cluster makes no"
            " secret of its own",
            "name one in spark.authenticate.secret, the one that its master and workers have",
        )
    for name in _EXECUTOR_OPTIONS:
        if find_java_option_secrets(settings.get(name, "")):
            yield JobWarning(
                ("spark", name),
                "holds a secret, which every user of the executors' machines can read on their"
                " command lines",
                "put it into a file there that only the executors' user can read",
            )
    if not master.startswith("k8s://") and "://" not in job.checkpoint:
        yield JobWarning(
            ("checkpoint",),
            "a folder that is not there yet is made with mode 0700: executors that run as another"
            " user cannot write to it",
            "make it beforehand, writable for a group of both users",
        )
