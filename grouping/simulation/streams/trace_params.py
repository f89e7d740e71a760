"""The options of traces, with their defaults and bounds."""

from typing import Literal, Self

from pydantic import Field, model_validator

from unskew.grouping.base import SEED_MAX, GroupingParams

KEYS_MAX = 20_000_000


class TraceParams(GroupingParams):
    """The options of every synthetic trace."""

    records: int = Field(1_000_000, ge=1, le=10_000_000_000)
    """How many records."""
    seed: int = Field(1, ge=0, le=SEED_MAX)
    """Another seed gives other records and other key hashes of the same law."""
    records_per_second: float = Field(10_000.0, ge=0.01, le=1e9)
    """The pace of the records' own timestamps (stream time)."""


class ZipfParams(TraceParams):
    """Keys of Zipf's law: the i-th has a probability in proportion to i ** -z."""

    z: float = Field(1.4, ge=0, le=10)
    """The exponent; 0 is uniform."""
    keys: int = Field(10_000, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""
    counts: Literal["drawn", "exact"] = "drawn"
    """Draw each record, or give every key its part of the records, rounded, in a random order."""


class ZipfTurnoverParams(ZipfParams):
    """Zipf's law, where some ranks get new keys, each at times of its own: a steady drift."""

    turnover: float = Field(0.5, ge=0, le=1)
    """The part of the ranks whose keys are replaced."""
    life_records: int = Field(100_000, ge=1, le=10**12)
    """Records of the stream after which a key is replaced by a new one."""


class HotKeyParams(ZipfParams):
    """One key takes r % of the records, over a long tail."""

    r: float = Field(68.0, ge=0, le=100)
    """Percent of the records that are the one key's."""
    z: float = Field(1.0, ge=0, le=10)
    """The exponent of the others."""


class ZipfDriftParams(ZipfParams):
    """The ZF stream of FISH: in every run the last part follows another ranking of the law."""

    records: int = Field(5_000_000, ge=1, le=10_000_000_000)
    """How many records (the paper: 50,000,000)."""
    keys: int = Field(100_000, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""
    runs: int = Field(10, ge=1, le=1000)
    """How often the stream drifts and comes back."""
    drift_share: float = Field(0.2, ge=0, le=1)
    """The part of a run, at its end, that has the other ranking."""
    ranking: Literal["reversed", "random"] = "reversed"
    """The other ranking: least frequent first, or a new random one in every run."""


class FlashParams(ZipfParams):
    """A Zipf stream in which a key never seen before turns hot at once."""

    z: float = Field(1.0, ge=0, le=10)
    """The exponent of the other keys."""
    share: float = Field(0.3, ge=0, le=1)
    """The new key's part of the records while it is hot."""
    begin: float = Field(0.5, ge=0, le=1)
    """Where it turns hot, as a part of the trace."""
    end: float = Field(1.0, ge=0, le=1)
    """Where it is over."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.begin > self.end:
            raise ValueError(f"begin must not be after end (got {self.begin} and {self.end})")
        return self


class CountryParams(TraceParams):
    """country-skew of Dynamic Key Grouping: one of 204 names takes r % of the records."""

    r: int = Field(80, ge=0, le=100)
    """Percent of the records (in half-skew: of the second half) that are the one key's."""
    keys: int = Field(204, ge=1, le=KEYS_MAX)
    """How many keys there are; the others are equally frequent."""


class UniformParams(TraceParams):
    """All keys are equally frequent."""

    keys: int = Field(10_000, ge=1, le=2**62)
    """How many keys there are to draw from; far more than records makes nearly all distinct."""


class PosgCostsParams(ZipfParams):
    """The synthetic streams of POSG: the cost of a record depends on its key."""

    records: int = Field(32_768, ge=1, le=10_000_000_000)
    """How many records."""
    z: float = Field(1.0, ge=0, le=10)
    """The exponent of Zipf's law."""
    keys: int = Field(4096, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""
    costs: int = Field(64, ge=1, le=65_536)
    """How many different costs, at equal steps, given to equally many keys at random."""
    cost_min: float = Field(1.0, gt=0, le=1e6)
    """The least cost, in milliseconds."""
    cost_max: float = Field(64.0, gt=0, le=1e6)
    """The greatest cost, in milliseconds."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.cost_min > self.cost_max:
            raise ValueError(
                f"cost_min must not be above cost_max (got {self.cost_min} and {self.cost_max})"
            )
        return self


class TweetsLikeParams(ZipfParams):
    """Like the tweets of POSG: 35,000 entities, the first in 6.5 % of them, in three classes."""

    records: int = Field(500_000, ge=1, le=10_000_000_000)
    """How many records."""
    z: float = Field(0.937, ge=0, le=10)
    """The exponent of Zipf's law; the default gives the first key 6.5 %."""
    keys: int = Field(35_000, ge=1, le=KEYS_MAX)
    """How many entities there are."""
    politicians: float = Field(0.05, ge=0, le=1)
    """The part of the entities that cost 5 ms; the first always does."""
    media: float = Field(0.05, ge=0, le=1)
    """The part of the entities that cost 25 ms; the others cost 1 ms."""

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self.politicians + self.media > 1:
            raise ValueError(
                "politicians and media together must not be above 1"
                f" (got {self.politicians} and {self.media})"
            )
        return self


class TradesLikeParams(ZipfParams):
    """Like a month of cashtags: 2,900 symbols, every week others in front, the first with 3.3 %."""

    records: int = Field(690_000, ge=1, le=10_000_000_000)
    """How many records."""
    z: float = Field(0.72, ge=0, le=10)
    """The exponent of Zipf's law; the default gives a phase's first key 3.3 %."""
    keys: int = Field(2_900, ge=1, le=KEYS_MAX)
    """How many symbols there are."""
    phases: int = Field(4, ge=1, le=1000)
    """In how many parts, each with other symbols in the first ranks."""
