"""What a job chooses by `type`, and others can bring: each is a class in a module of its own.

The tables are texts: this package imports nothing of `jobs`, and a class is loaded when a job is
checked.
"""

import inspect
from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field

from unskew.config.models.base import Model, make_typed_model
from unskew.config.models.operator import OperatorOptions
from unskew.config.registry import Registry, RegistryError

OPERATORS = Registry(
    {
        "aggregate": "unskew.jobs.operators.aggregate:Aggregate",
        "results": "unskew.jobs.operators.results:Results",
        "word_count": "unskew.jobs.operators.word_count:WordCount",
        "vwap": "unskew.jobs.operators.vwap:Vwap",
        "hashtags": "unskew.jobs.operators.hashtags:Hashtags",
        "rows": "unskew.jobs.operators.table_rows:TableRows",
        "python": "unskew.jobs.operators.user_code.python_operator:PythonOperator",
        "paced": "unskew.jobs.operators.paced:Paced",
    },
    entry_point_group="unskew.operators",
    base="unskew.jobs.operators.base:Operator",
)
SINKS = Registry(
    {
        "kafka": "unskew.jobs.sinks.kafka:KafkaSink",
        "files": "unskew.jobs.sinks.files:FilesSink",
        "table": "unskew.jobs.sinks.tables.table:TableSink",
        "postgres": "unskew.jobs.sinks.postgres:PostgresSink",
        "console": "unskew.jobs.sinks.console:ConsoleSink",
        "python": "unskew.jobs.sinks.user_function:PythonSink",
        "memory": "unskew.jobs.sinks.memory:MemorySink",
    },
    entry_point_group="unskew.sinks",
    base="unskew.jobs.sinks.base:Sink",
)
DEAD_LETTERS = Registry(
    {
        "kafka": "unskew.jobs.sinks.kafka:KafkaDeadLetters",
        "files": "unskew.jobs.sinks.files:FilesDeadLetters",
    },
    entry_point_group="unskew.dead_letters",
    base="unskew.jobs.sinks.base:DeadLetters",
)
SECTIONS = {"operator": OPERATORS, "sinks": SINKS, "dead_letters": DEAD_LETTERS}
"""The registries, each by the section of a job whose `type` is a name in it."""


def load_operator(options: OperatorOptions) -> Any:
    """The class of a job's operator: of a user's own the options know it."""
    return getattr(options, "implementation", None) or OPERATORS.load(options.type)


def make_section_model(section: str, name: str) -> type[Model]:
    """The section with `type: name`, as a job holds it; RegistryError if there is none.

    An operator has its options beside it, a target is made of them. The first paragraph of the
    class's docstring says what the type does, the options' docstring what the section is.
    """
    chosen = SECTIONS[section].load(name)
    about, _, more = inspect.cleandoc(chosen.__doc__ or "").partition("\n\n")
    options = getattr(chosen, "Options", None)
    if issubclass(chosen, Model):
        return make_typed_model(chosen.__name__, chosen, name, about or name, more or about or name)
    if isinstance(options, type) and issubclass(options, OperatorOptions):
        return make_typed_model(chosen.__name__, options, name, about or name)
    where = f"{chosen.__module__}:{chosen.__qualname__}"
    raise RegistryError(f"{where} has no Options, a subclass of OperatorOptions")


def is_installed(section: str, name: str) -> bool:
    """Is `name` a type that another distribution brings?"""
    registry = SECTIONS[section]
    return name not in registry.list_shipped_names() and name in registry.list_installed_names()


def make_section_type(section: str, installed: Iterable[type[Model]] = ()) -> Any:
    """The type of a section: any that ships, or one of `installed`."""
    shipped = [make_section_model(section, name) for name in SECTIONS[section].list_shipped_names()]
    return Annotated[reduce(or_, [*shipped, *installed]), Field(discriminator="type")]
