"""The `grouping` section: `none`, or any grouping of the registry with its own `Params`.

The models follow from the registry, so a new grouping is a new `type` here by itself.
"""

import inspect
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from config.models.base import Model
from grouping.base import GroupingParams
from grouping.registry import GROUPINGS


class NoGrouping(Model):
    """Spark's own `groupBy(key)`, nothing is routed: the baseline to compare with."""

    type: Literal["none"]
    """Routes nothing."""


def _model(name: str) -> type[GroupingParams]:
    grouping = GROUPINGS[name]
    about = inspect.getdoc(grouping) or name
    type_field: Any = (Literal[name], Field(description=about.partition("\n\n")[0]))
    return create_model(
        f"{grouping.__name__}Grouping",
        __base__=grouping.Params,
        __doc__=inspect.getdoc(grouping.Params),
        type=type_field,
    )


GROUPING_MODELS: dict[str, type[Any]] = {
    "none": NoGrouping,
    **{name: _model(name) for name in GROUPINGS},
}

if TYPE_CHECKING:
    GroupingChoice = Any
else:
    GroupingChoice = Annotated[reduce(or_, GROUPING_MODELS.values()), Field(discriminator="type")]


def grouping_options(choice: Any) -> dict[str, Any]:
    """The options of a chosen grouping as `grouping.registry.create` takes them."""
    return {name: getattr(choice, name) for name in type(choice).model_fields if name != "type"}
