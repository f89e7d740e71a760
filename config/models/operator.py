"""The operators that ship, with their options; and what one of a user's own must offer.

A user's operator is a class under the entry point group `unskew.operators`. Its name there is its
`type` in YAML, its attribute `Options` is a subclass of `OperatorOptions`, and `splits = False` on
it says that all records of a key must meet in one partition.
"""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from unskew.config.models.base import Expression, Model
from unskew.config.types.units import Duration

ENTRY_POINT_GROUP = "unskew.operators"


class OperatorOptions(Model):
    """An operator's options."""

    splits: ClassVar[bool] = True
    """May the records of one key go to several partitions?"""

    if TYPE_CHECKING:

        @property
        def type(self) -> str:
            """The operator's name; a field in every operator that a job can name."""


class WordCount(OperatorOptions):
    """How often each word occurs."""

    type: Literal["word_count"]
    """Counts words."""
    text: Expression = "value"
    """The text whose words are counted, as an SQL expression."""


class Vwap(OperatorOptions):
    """Volume-weighted average price of each symbol."""

    type: Literal["vwap"]
    """The sum of price times volume over the sum of volume."""
    symbol: Expression = "symbol"
    """What is traded, as an SQL expression: the key."""
    price: Expression = "price"
    """The price of a trade, as an SQL expression."""
    volume: Expression = "volume"
    """How much was traded, as an SQL expression: more than 0."""
    price_decimals: Annotated[int, Field(ge=0, le=8)] = 6
    """Decimals of a price, of 18 digits in all. A number with more is rounded half up if it is a
    float, and refused if it is exact."""
    volume_decimals: Annotated[int, Field(ge=0, le=8)] = 6
    """Decimals of a volume, of 18 digits in all, by the same rule."""


class Hashtags(OperatorOptions):
    """Posts and distinct users of each hashtag."""

    type: Literal["hashtags"]
    """Counts posts and distinct users of each hashtag."""
    hashtags: Expression = "hashtags"
    """The hashtags of a post, as an SQL expression of type ARRAY<STRING>: each is a key. A
    post counts once for a hashtag that it names twice; null and '' are no hashtags."""
    user: Expression = "user"
    """Who posted, as an SQL expression."""
    top: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Keep this many hashtags a window, those with the most posts and of equal ones the first by
    name; without it, all. Needs `merge.output: append`, where a window's results come together."""


class Paced(OperatorOptions):
    """A declared cost a record, for benchmarks."""

    type: Literal["paced"]
    """Counts records of each key and takes a declared time for each."""
    key: Expression = "key"
    """The key, as an SQL expression."""
    text: Expression | None = None
    """A text, each word of which is a record of its own, as in word_count; `key` is not used
    then."""
    cost: Duration = Duration.parse("100 us")
    """The time a record takes, before factors."""
    spend: Literal["sleep", "burn"] = "sleep"
    """Sleep the time, or compute for as long."""
    class_factors: Annotated[
        list[Annotated[float, Field(ge=0, le=1_000)]], Field(min_length=1, max_length=1_000)
    ] = Field(default_factory=lambda: [1.0])
    """Cost factors by class of key; a key's class is its hash modulo their number."""
    partition_factors: dict[
        Annotated[int, Field(ge=0, le=9_999)], Annotated[float, Field(ge=0, le=1_000)]
    ] = Field(default_factory=dict)
    """Cost factors by partition, for slow ones; the others have 1."""


SHIPPED_OPERATORS: tuple[type[OperatorOptions], ...] = (WordCount, Vwap, Hashtags, Paced)
SHIPPED_NAMES = ("word_count", "vwap", "hashtags", "paced")

if TYPE_CHECKING:
    Operator = OperatorOptions
else:
    Operator = Annotated[WordCount | Vwap | Hashtags | Paced, Field(discriminator="type")]
