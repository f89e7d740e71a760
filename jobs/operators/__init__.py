"""The operators by name: those that ship, and those installed under an entry point."""

from importlib.metadata import entry_points

from config.models.operator import ENTRY_POINT_GROUP, OperatorOptions
from jobs.operators.base import Operator
from jobs.operators.word_count import WordCount

SHIPPED: dict[str, type[Operator]] = {"word_count": WordCount}


def operator_for(options: OperatorOptions) -> Operator:
    """The operator that a job's `operator` section names, with these options."""
    shipped = SHIPPED.get(options.type)
    if shipped is not None:
        return shipped(options)
    entry = next(iter(entry_points(group=ENTRY_POINT_GROUP, name=options.type)))
    installed: type[Operator] = entry.load()
    return installed(options)
