"""All groupings by name, and `create`, which makes one from plain options."""

from pydantic import ValidationError

from unskew.grouping.algorithms.d_choices import DChoices
from unskew.grouping.algorithms.distribution_aware import DistributionAware
from unskew.grouping.algorithms.dstream import DStream
from unskew.grouping.algorithms.dynamic_key import DynamicKey
from unskew.grouping.algorithms.fish import Fish
from unskew.grouping.algorithms.key import Key
from unskew.grouping.algorithms.level import Level
from unskew.grouping.algorithms.partial_key import PartialKey
from unskew.grouping.algorithms.posg import Posg
from unskew.grouping.algorithms.prompt import Prompt
from unskew.grouping.algorithms.round_robin_head import RoundRobinHead
from unskew.grouping.algorithms.shuffle import Shuffle
from unskew.grouping.algorithms.w_choices import WChoices
from unskew.grouping.algorithms.whole import Whole
from unskew.grouping.base import Grouping, Setting
from unskew.grouping.errors import GroupingError
from unskew.grouping.options.broken_rules import list_problems

GROUPINGS: dict[str, type[Grouping]] = {
    grouping.name: grouping
    for grouping in (
        Key,
        Shuffle,
        PartialKey,
        DChoices,
        WChoices,
        RoundRobinHead,
        Fish,
        DStream,
        DynamicKey,
        Posg,
        DistributionAware,
        Level,
        Whole,
        Prompt,
    )
}


def create(
    name: str,
    *,
    partitions: int,
    source: int = 0,
    sources: int = 1,
    seed: int = 0,
    **params: object,
) -> Grouping:
    """The grouping `name` for one source, with `params` checked by its `Params`."""
    if name not in GROUPINGS:
        raise GroupingError(f"grouping: one of {', '.join(GROUPINGS)} (got {name!r})")
    chosen = GROUPINGS[name]
    setting = Setting(partitions, source, sources, seed)
    try:
        return chosen(setting, chosen.Params(**params))
    except ValidationError as error:
        raise GroupingError("; ".join(list_problems(name, chosen.Params, error))) from error
