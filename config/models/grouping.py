"""The `grouping` section: `none`, `local`, `auto`, or any of the registry with its own `Params`.

The models of the last follow from the registry, so a new grouping is a new `type` here by itself.
"""

import inspect
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from unskew.config.models.base import Model, make_typed_model
from unskew.grouping.base import GroupingParams
from unskew.grouping.registry import GROUPINGS


class NoGrouping(Model):
    """Spark's own `groupBy(key)`, nothing is routed: the baseline to compare with."""

    splits: ClassVar[bool] = False
    type: Literal["none"]
    """Routes nothing."""


class LocalGrouping(Model):
    """The operator works in the tasks that read: nothing is routed, no record is shuffled."""

    splits: ClassVar[bool] = True
    type: Literal["local"]
    """Routes nothing, and works where a record is read."""


class AutoGrouping(Model):
    """Measures each batch and takes what is fastest: `local`, `level` by counts or time, a hash."""

    splits: ClassVar[bool] = True
    type: Literal["auto"]
    """Takes another grouping by itself where that is faster."""
    sample_records: Annotated[int, Field(ge=0, le=100_000)] = 20_000
    """How many records are read before the first batch, to begin with what the cost model says of
    them; 0: it begins with `level`."""
    gain_min: Annotated[float, Field(ge=0.01, le=1.0)] = 0.03
    """The part of a batch's time that another grouping must save to be taken."""


UNROUTED: dict[str, type[NoGrouping] | type[LocalGrouping] | type[AutoGrouping]] = {
    "none": NoGrouping,
    "local": LocalGrouping,
    "auto": AutoGrouping,
}
"""The types that have no router of their own: no `Grouping` of the registry."""


def _model(name: str) -> type[GroupingParams]:
    grouping = GROUPINGS[name]
    about = inspect.getdoc(grouping) or name
    return make_typed_model(
        f"{grouping.__name__}Grouping", grouping.Params, name, about.partition("\n\n")[0]
    )


GROUPING_MODELS: dict[str, type[Any]] = {
    **UNROUTED,
    **{name: _model(name) for name in GROUPINGS},
}

if TYPE_CHECKING:
    GroupingChoice = Any
else:
    GroupingChoice = Annotated[reduce(or_, GROUPING_MODELS.values()), Field(discriminator="type")]


def splits_keys(name: str) -> bool:
    """May the records of one key go to several partitions under this type of grouping?"""
    return UNROUTED[name].splits if name in UNROUTED else GROUPINGS[name].splits


def read_grouping_options(choice: Any) -> dict[str, Any]:
    """The options of a chosen grouping as `grouping.registry.create` takes them."""
    return {name: getattr(choice, name) for name in type(choice).model_fields if name != "type"}
