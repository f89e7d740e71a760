"""Unskew: skew-proof partitioning for PySpark Structured Streaming.

    from unskew import load_job, route, run_job

    routed = route(events, key="user_id", grouping="level", partitions=16)  # any DataFrame
    run_job(load_job("job.yaml"))  # a job in YAML, as `unskew run job.yaml` runs it

`__all__` is the public interface. Whatever else is in this package is private and may change in any
release. `import unskew` loads nothing; each name loads what it needs when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unskew.config.loader import load_job
    from unskew.config.models.operator import OperatorOptions
    from unskew.grouping.base import Grouping, GroupingParams
    from unskew.grouping.spark.route import route
    from unskew.jobs.engine.run import run_job
    from unskew.jobs.operators.base import Operator
    from unskew.jobs.operators.user_code.rows import RowOperator
    from unskew.jobs.sinks.base import Batch, DeadLetters, Sink

__version__ = "0.1.0"
__all__ = [
    "Batch",
    "DeadLetters",
    "Grouping",
    "GroupingParams",
    "Operator",
    "OperatorOptions",
    "RowOperator",
    "Sink",
    "__version__",
    "load_job",
    "route",
    "run_job",
]

_MODULES = {
    "Batch": "unskew.jobs.sinks.base",
    "DeadLetters": "unskew.jobs.sinks.base",
    "Grouping": "unskew.grouping.base",
    "GroupingParams": "unskew.grouping.base",
    "Operator": "unskew.jobs.operators.base",
    "OperatorOptions": "unskew.config.models.operator",
    "RowOperator": "unskew.jobs.operators.user_code.rows",
    "Sink": "unskew.jobs.sinks.base",
    "load_job": "unskew.config.loader",
    "route": "unskew.grouping.spark.route",
    "run_job": "unskew.jobs.engine.run",
}

if not TYPE_CHECKING:  # a type checker that saw it would take every misspelt name for an Any

    def __getattr__(name):
        """Import a public name when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
