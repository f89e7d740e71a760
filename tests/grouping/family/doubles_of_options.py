"""Groupings whose options or docstrings break a promise; the others are in
`tests/grouping/family/doubles.py`.
"""

import dataclasses

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tests.grouping.family.doubles import breaks, in_module
from unskew.grouping.algorithms.key import Key
from unskew.grouping.base import GroupingParams, Setting
from unskew.grouping.hashing import salts
from unskew.grouping.snapshot import Snapshot

GOOD = """Key grouping, again: the double of a docstring that has all it needs.

The idea is to hash the key. There is no state.

Departures: none.

| paper | here |
|---|---|
| k | `key` |

>>> 1 + 1
2

Reference: A. Author, "A title", 2016.
"""


class TupleParams(GroupingParams):
    """An option that YAML has no word for."""

    weights: tuple[int, ...] = (1, 2)
    """A tuple comes back as a list."""


@breaks("options_survive_yaml", "tuple")
class TakesATuple(Key):
    Params = TupleParams


class RoundedParams(GroupingParams):
    """An option that is not what was written."""

    share: float = Field(default=0.5, ge=0, le=1)
    """Halved whenever it is read."""

    @model_validator(mode="before")
    @classmethod
    def _halve(cls, given: dict[str, float]) -> dict[str, float]:
        return {"share": given.get("share", 1.0) / 2}


@breaks("options_survive_yaml", "came back as")
class Halves(Key):
    Params = RoundedParams


class OneNumberParams(GroupingParams):
    """An option that changes what the state means."""

    share: float = Field(default=0.5, ge=0, le=1)
    """Any."""


@breaks("a_snapshot_of_other_options_is_refused", "is taken")
class TakesOtherOptions(Key):
    Params = OneNumberParams

    def restore(self, snapshot: Snapshot) -> None:
        own = self.params.model_dump(mode="json")
        super().restore(dataclasses.replace(snapshot, options=own))


@breaks("a_snapshot_of_other_options_is_refused", "it does not say its options")
class HidesItsOptions(Key):
    Params = OneNumberParams

    def snapshot(self) -> Snapshot:
        return dataclasses.replace(super().snapshot(), options={})


class OpenParams(GroupingParams):
    """Takes what it does not know."""

    model_config = ConfigDict(extra="ignore")


@breaks("bad_options_are_named", "no_such_option=1 is taken")
class TakesAnything(Key):
    Params = OpenParams


class UnboundedParams(GroupingParams):
    """A number without a bound."""

    share: float = 0.5
    """May be anything."""


@breaks("bad_options_are_named", "share: a number without a bound")
class Unbounded(Key):
    Params = UnboundedParams


class HalfOpenParams(GroupingParams):
    """A bound that lets the wrong side in."""

    share: float = Field(default=0.5, le=1)
    """May be negative."""


@breaks("bad_options_are_named", "share=.* is taken")
class TakesNegatives(Key):
    Params = HalfOpenParams


class LaxParams(GroupingParams):
    """Takes true for 1."""

    model_config = ConfigDict(strict=False)
    count: int = Field(default=1, ge=1, le=9)
    """How many."""


@breaks("bad_options_are_named", "count: takes true")
class TakesTrue(Key):
    Params = LaxParams


class NamelessParams(GroupingParams):
    """Says that something is wrong, but not what."""

    share: float = Field(default=0.5, ge=0, le=1)
    """A share."""

    @model_validator(mode="before")
    @classmethod
    def _check(cls, given: dict[str, object]) -> dict[str, object]:
        if given and not isinstance(given.get("share"), float):
            raise ValueError("something is wrong")
        return given


@breaks("bad_options_are_named", "something is wrong")
class NamesNothing(Key):
    Params = NamelessParams


class SpokenParams(GroupingParams):
    """Its default, when it is written down, means something else."""

    salted: bool = False
    """Another salt."""


@breaks("options_at_their_defaults_are_the_defaults", "other routes")
class HearsItsDefault(Key):
    Params = SpokenParams  # type: ignore[assignment]

    def __init__(self, setting: Setting, params: SpokenParams) -> None:
        super().__init__(setting, params)  # type: ignore[arg-type]
        self._salt = salts(setting.seed + len(params.model_fields_set), 1)[0]


class BareParams(GroupingParams):
    """An option without a word."""

    share: float = Field(default=0.5, ge=0, le=1)


@breaks("options_have_a_description", "share: no docstring")
class SaysNothing(Key):
    Params = BareParams


class SilentParams(BaseModel):
    share: float = Field(default=0.5, ge=0, le=1, description="A share.")


SilentParams.__doc__ = None


@breaks("options_have_a_description", "the options have no docstring")
class SaysNothingAtAll(Key):
    Params = SilentParams  # type: ignore[assignment]


@breaks("the_docstring_is_whole", "the first line")
class NoDocstring(Key):
    pass


@breaks("the_docstring_is_whole", "no idea")
class NoIdea(Key):
    pass


@breaks("the_docstring_is_whole", "nothing about the state")
class NoState(Key):
    pass


@breaks("the_docstring_is_whole", "no Departures")
class NoDepartures(Key):
    pass


@breaks("the_docstring_is_whole", "no table")
class NoTable(Key):
    pass


@breaks("the_docstring_is_whole", "no doctest")
class NoDoctest(Key):
    pass


@breaks("the_docstring_is_whole", "is the Reference")
class NoReference(Key):
    pass


@breaks("the_doctest_passes", "there is no example")
class NoExample(Key):
    pass


@breaks("the_doctest_passes", "1 of 1 examples fail")
class FalseExample(Key):
    pass


@breaks("one_name_everywhere", "is in unskew.grouping.algorithms.double_elsewhere")
class LivesElsewhere(Key):
    pass


@breaks("one_name_everywhere", "there is no test_double_Untested.py")
class Untested(Key):
    pass


_IDEA = "The idea is to hash the key. There is no state.\n\n"
in_module("unskew.grouping.algorithms.double_1", "", NoDocstring)
in_module("unskew.grouping.algorithms.double_2", GOOD.replace(_IDEA, ""), NoIdea)
in_module("unskew.grouping.algorithms.double_3", GOOD.replace(" There is no state.", ""), NoState)
in_module(
    "unskew.grouping.algorithms.double_4", GOOD.replace("Departures: none.\n\n", ""), NoDepartures
)
in_module("unskew.grouping.algorithms.double_5", GOOD.replace("|---|---|\n", ""), NoTable)
in_module("unskew.grouping.algorithms.double_6", GOOD.replace(">>> 1 + 1\n2\n\n", ""), NoDoctest)
in_module("unskew.grouping.algorithms.double_7", GOOD[: GOOD.index("Reference")], NoReference)
in_module("unskew.grouping.algorithms.double_8", GOOD.replace(">>> 1 + 1\n2\n\n", ""), NoExample)
in_module(
    "unskew.grouping.algorithms.double_9",
    GOOD.replace("2\n\nReference", "3\n\nReference"),
    FalseExample,
)
in_module("unskew.grouping.algorithms.double_elsewhere", GOOD, LivesElsewhere)
in_module("unskew.grouping.algorithms.double_Untested", GOOD, Untested)
