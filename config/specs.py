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

from unskew.config.models.base import Model, with_type
from unskew.config.models.operator import OperatorOptions
from unskew.config.registry import Registry, RegistryError

OPERATORS = Registry(
    {
        "word_count": "unskew.jobs.operators.word_count:WordCount",
        "vwap": "unskew.jobs.operators.vwap:Vwap",
        "hashtags": "unskew.jobs.operators.hashtags:Hashtags",
        "paced": "unskew.jobs.operators.paced:Paced",
    },
    entry_point_group="unskew.operators",
    base="unskew.jobs.operators.base:Operator",
)
SECTIONS = {"operator": OPERATORS}
"""By the section of a job whose `type` is a name of the registry."""


def section_model(section: str, name: str) -> type[Model]:
    """The section with `type: name`, as a job holds it; RegistryError if there is none."""
    chosen = SECTIONS[section].load(name)
    options = getattr(chosen, "Options", None)
    if not (isinstance(options, type) and issubclass(options, OperatorOptions)):
        where = f"{chosen.__module__}:{chosen.__qualname__}"
        raise RegistryError(f"{where} has no Options, a subclass of OperatorOptions")
    about, _, _ = inspect.cleandoc(chosen.__doc__ or "").partition("\n\n")
    return with_type(chosen.__name__, options, name, about or "An operator of another package.")


def is_installed(section: str, name: str) -> bool:
    """Is `name` a type that another distribution brings?"""
    registry = SECTIONS[section]
    return name not in registry.shipped_names() and name in registry.installed_names()


def section_choice(section: str, installed: Iterable[type[Model]] = ()) -> Any:
    """The type of a section: any that ships, or one of `installed`."""
    shipped = [section_model(section, name) for name in SECTIONS[section].shipped_names()]
    return Annotated[reduce(or_, [*shipped, *installed]), Field(discriminator="type")]
