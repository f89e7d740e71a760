"""The operator that a job names."""

from unskew.config.models.grouping import NoGrouping
from unskew.config.models.job import Job
from unskew.config.models.operator import OperatorOptions
from unskew.config.specs import OPERATORS
from unskew.jobs.operators.base import Operator


def operator_for(options: OperatorOptions) -> Operator:
    """The operator that a job's `operator` section names, with these options."""
    operator: type[Operator] = OPERATORS.load(options.type)
    # Options of the operator's own class: the section's is made at run time, and the operator is
    # sent to processes that do not have it.
    fields = operator.Options.model_fields
    return operator(
        operator.Options.model_construct(**{name: getattr(options, name) for name in fields})
    )


def computed_by_spark(job: Job) -> bool:
    """Is all the work plain Spark's? There are no reports then, and no partial stage."""
    return isinstance(job.grouping, NoGrouping) and operator_for(job.operator).native
