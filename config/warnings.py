"""Warnings about a valid job, which `unskew lint` prints."""

from collections.abc import Iterator
from typing import NamedTuple

from unskew.config.models.decode import CsvDecode, JsonDecode
from unskew.config.models.job import Job
from unskew.config.problems.problem import Path
from unskew.config.types.ddl import parse_columns


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
