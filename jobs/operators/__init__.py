"""The operators by name: those that ship, and those installed under an entry point."""

from importlib.metadata import entry_points

from unskew.config.models.grouping import NoGrouping
from unskew.config.models.job import Job
from unskew.config.models.operator import ENTRY_POINT_GROUP, OperatorOptions
from unskew.jobs.operators.base import Operator
from unskew.jobs.operators.hashtags import Hashtags
from unskew.jobs.operators.paced import Paced
from unskew.jobs.operators.vwap import Vwap
from unskew.jobs.operators.word_count import WordCount

SHIPPED: dict[str, type[Operator]] = {
    "word_count": WordCount,
    "vwap": Vwap,
    "hashtags": Hashtags,
    "paced": Paced,
}


def operator_for(options: OperatorOptions) -> Operator:
    """The operator that a job's `operator` section names, with these options."""
    shipped = SHIPPED.get(options.type)
    if shipped is not None:
        return shipped(options)
    entry = next(iter(entry_points(group=ENTRY_POINT_GROUP, name=options.type)))
    installed: type[Operator] = entry.load()
    # The options as the operator's own class: the one that a job's model is made of exists in this
    # process only, and the operator is sent to others.
    own = installed.Options
    return installed(
        own.model_construct(**{name: getattr(options, name) for name in own.model_fields})
    )


def computed_by_spark(job: Job) -> bool:
    """Is all the work plain Spark's? There are no reports then, and no partial stage."""
    return isinstance(job.grouping, NoGrouping) and operator_for(job.operator).native
