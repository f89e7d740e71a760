"""The operator that a job names."""

from typing import TYPE_CHECKING

from unskew.config.models.grouping import NoGrouping
from unskew.config.models.operator import OperatorOptions
from unskew.config.models.window import NoWindow, Window
from unskew.config.specs import OPERATORS
from unskew.jobs.operators.base import WINDOW_BOUNDS, Operator

if TYPE_CHECKING:
    from unskew.config.models.job import Job


def make_operator(options: OperatorOptions) -> Operator:
    """Make the operator that a job's `operator` section names, with these options."""
    operator: type[Operator] = OPERATORS.load(options.type)
    return operator.from_options(options)


def make_operator_of_result(options: OperatorOptions, result: str | None) -> Operator:
    """Make the operator of a result: one of several, or the job's only one."""
    operator = make_operator(options)
    return operator.parts.get(result, operator) if result else operator


def list_key_columns(job: "Job", result: str | None = None) -> tuple[str, ...]:
    """List the columns that identify a result: the window's bounds and the key's columns."""
    bounds = () if isinstance(job.window, NoWindow) else WINDOW_BOUNDS
    return (*bounds, *make_operator_of_result(job.operator, result).key_names)


def list_result_columns(operator: Operator, window: Window) -> list[str]:
    """List the columns of a result: the window's bounds, the key's columns and the operator's."""
    bounds = () if isinstance(window, NoWindow) else WINDOW_BOUNDS
    return [*bounds, *operator.key_names, *operator.final]


def is_computed_by_spark(job: "Job") -> bool:
    """Is all the work plain Spark's? There are no reports then, and no partial stage."""
    return isinstance(job.grouping, NoGrouping) and make_operator(job.operator).native
