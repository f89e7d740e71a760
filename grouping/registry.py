"""All groupings by name, and `create`, which makes one from plain options."""

from typing import Any

from pydantic import ValidationError

from grouping.base import Grouping, Setting
from grouping.d_choices import DChoices
from grouping.distribution_aware import DistributionAware
from grouping.dstream import DStream
from grouping.dynamic_key import DynamicKey
from grouping.errors import GroupingError
from grouping.fish import Fish
from grouping.key import Key
from grouping.level import Level
from grouping.partial_key import PartialKey
from grouping.posg import Posg
from grouping.round_robin_head import RoundRobinHead
from grouping.shuffle import Shuffle
from grouping.w_choices import WChoices

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
        raise GroupingError("; ".join(_problems(name, error))) from error


def _problems(name: str, error: ValidationError) -> list[str]:
    return [_problem(name, dict(problem)) for problem in error.errors()]


def _problem(name: str, problem: dict[str, Any]) -> str:
    if problem["type"] == "value_error":
        # Of several options together: the message names them and their values itself.
        return f"{name}.{problem['ctx']['error']}"
    path = ".".join([name, *map(str, problem["loc"])])
    return f"{path}: {problem['msg']} (got {problem['input']!r})"
