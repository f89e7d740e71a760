"""Traces like streams of which papers print statistics: records, distinct keys, and p1 in some.

A real stream cannot be had here, a law with its statistics can. Keys follow Zipf's law. Its
exponent and its number of keys are those with which the expected number of distinct keys, and the
part p1 of the most frequent one, are as printed. Where no p1 is printed the exponent is 1, and
where a paper says that its stream drifts, but not how, half of the keys live for a tenth of the
stream: both are ours, and options. So `z` and `turnover` of such a trace are assumptions, and what
is measured on it is no figure of the real stream.

| trace | records | distinct keys | p1 | printed in |
|---|---|---|---|---|
| `wikipedia-like` (WP) | 22 M | 2.9 M | 9.32 % | [1], table I |
| `twitter-words-like` (TW) | 1.2 G | 31 M | 2.67 % | [1], table I |
| `trades-like` (CT) | 690 k | 2.9 k | 3.29 %, drifts | [1], table I, and section V |
| `memetracker-like` (MT) | 49.21 M | 0.39 M | drifts | [2], table 2 |
| `amazon-like` (AM) | 7.91 M | 0.25 M | drifts | [2], table 2 |
| `dstream-words-like` (TW) | 658 M | 5.7 M | | [3], table II |
| `stocks-like` (ST) | 274 M | 6,649 | | [3], table II |
| `hashtags-like` (HA) | 43 M | 3.4 M | | [3], table II |

Another length of the stream (`records`) has fewer distinct keys, and the same p1.

Reference: [1] M. A. U. Nasir et al., "When two choices are not enough", ICDE 2016; [2] Y. Huang,
"Efficient time-evolving stream processing at scale", TPDS 2019; [3] H. Chen et al.,
"Differentiated stream processing" (DStream).
"""

from pydantic import Field

from unskew.grouping.simulation.streams.trace_params import ZipfTurnoverParams

KEYS_MAX = 10**10


class PublishedParams(ZipfTurnoverParams):
    """Options of a trace like a published stream."""

    z: float = Field(1.0, ge=0, le=10)
    """The exponent of Zipf's law."""
    turnover: float = Field(0.0, ge=0, le=1)
    """The part of the ranks whose keys are replaced."""


class WikipediaLikeParams(PublishedParams):
    """Pages of Wikipedia that were visited on a day."""

    records: int = Field(22_000_000, ge=1, le=10_000_000_000)
    """How many records."""
    z: float = Field(1.067, ge=0, le=10)
    """The exponent of Zipf's law."""
    keys: int = Field(24_424_744, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""


class TwitterWordsLikeParams(PublishedParams):
    """Words of a month of tweets."""

    records: int = Field(1_200_000_000, ge=1, le=10_000_000_000)
    """How many records."""
    z: float = Field(0.921, ge=0, le=10)
    """The exponent of Zipf's law."""
    keys: int = Field(31_102_434, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""


class MemetrackerLikeParams(PublishedParams):
    """Words of quotes in blogs and news."""

    records: int = Field(49_210_000, ge=1, le=10_000_000_000)
    """How many records."""
    keys: int = Field(65_868, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from at a time."""
    turnover: float = Field(0.5, ge=0, le=1)
    """The part of the ranks whose keys are replaced."""
    life_records: int = Field(4_921_000, ge=1, le=10**12)
    """Records of the stream after which a key is replaced by a new one."""


class AmazonLikeParams(PublishedParams):
    """Films that were reviewed."""

    records: int = Field(7_910_000, ge=1, le=10_000_000_000)
    """How many records."""
    keys: int = Field(46_496, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from at a time."""
    turnover: float = Field(0.5, ge=0, le=1)
    """The part of the ranks whose keys are replaced."""
    life_records: int = Field(791_000, ge=1, le=10**12)
    """Records of the stream after which a key is replaced by a new one."""


class DStreamWordsLikeParams(PublishedParams):
    """Words of tweets, as DStream counted them."""

    records: int = Field(658_000_000, ge=1, le=10_000_000_000)
    """How many records."""
    keys: int = Field(5_700_497, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""


class StocksLikeParams(PublishedParams):
    """Records of a stock exchange."""

    records: int = Field(274_000_000, ge=1, le=10_000_000_000)
    """How many records."""
    keys: int = Field(6_649, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""


class HashtagsLikeParams(PublishedParams):
    """Hashtags of a month of tweets."""

    records: int = Field(43_000_000, ge=1, le=10_000_000_000)
    """How many records."""
    keys: int = Field(4_833_102, ge=1, le=KEYS_MAX)
    """How many keys there are to draw from."""


PUBLISHED: dict[str, type[PublishedParams]] = {
    "wikipedia-like": WikipediaLikeParams,
    "twitter-words-like": TwitterWordsLikeParams,
    "memetracker-like": MemetrackerLikeParams,
    "amazon-like": AmazonLikeParams,
    "dstream-words-like": DStreamWordsLikeParams,
    "stocks-like": StocksLikeParams,
    "hashtags-like": HashtagsLikeParams,
}
