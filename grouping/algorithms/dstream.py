"""DStream: hot keys shuffle over all partitions, cold keys stay at their home.

A predictor tells hot from cold at the cost of one random number a record: a coin is tossed until
tails, and only runs longer than `r` tosses touch a *synopsis* of bit vectors, one per key that was
lucky (`grouping.parts.sketches.coin_flip`). Two different long runs make a key hot; random decline
forgets it when it slows down. The hot keys are in a counting Bloom filter, and routing asks only
that: in it, the next partition in turn; else, the partition of the key's hash.

What it guarantees and costs: the hot records, of all keys together, are spread to within one over
the partitions. A key with more than the share 2p of the records is hot most of the time, so how
well that balances depends on p x n: with p = 0.01 a key of just under 2 % may stay whole, which is
nothing for n = 8 and two partitions' worth of records for n = 100. **The threshold does not depend
on n; `p_times_n` makes it do so**: 0.1 treats keys from 1/(5n) on as hot, as `d_choices` does. A
hot key costs a pair (key, partition) in every partition, so up to n times the state of a cold one.
A decision is as old as 2^r / p records (6,400 by default): a source that sees few more than that in
its life hardly learns, and should have a smaller `r` (3 costs half of the speed).

Measured (10^5 keys, exact counts of intervals of 10 x 2^r / p records): of the keys identified, 96
% at z = 1 and 98 % at z = 1.4 had 2^(r-2) records or more, which is the paper's 96 %; below z = 1
it falls (88 % at 0.8), because theorem 1 reckons with few rare keys. The threshold is soft: a key
with the share p/2 is hot for 20 % of the time, with p 42 %, 2p 74 %, 4p 90 %, 8p 98 %. As for load,
the largest over the mean at n = 10 is 1.1 for z = 1.0, 1.4 and 2.0 alike, where `key` has 2.0, 4.1,
6.5 and `partial_key` 1.0, 1.7, 3.0: the hashed cold keys are what remains, so two choices are
better where no key is hot.

State: 4/p + 64 keys in the synopsis, of 25 to 33 bytes with its table, and 4 bytes for each of the
filter's cells, 10 to 20 a hot key expected at 1 %: 16 kB by default, whatever the number of keys.

*Departures.* The paper prints a default for zeta alone; r, l and p are those of the authors'
published configuration (its table 1 uses r = 10). The paper counts heads and then takes 2^-r for
the chance of more than r, which is that of more than r *tosses*, the tail included; we count
tosses, so that its analysis holds and t ends at l + r, the number of flips it allows. Each source
has its own synopsis and filter, where the paper has one predictor for all: a source knows its own
records only, and a hot key is as hot in each; with many sources r is smaller by default, or each
would learn from too few records. The filter therefore follows at once. The paper says
nothing of the filter's size: it is computed from the hot keys expected and a false-positive rate.
A key leaves the filter when it has fewer than zeta bits, not only when its vector is empty. The
synopsis has a limit, because its theorem 3 (fewer than 1/p keys) does not hold: at Zipf 1.0 over
10^5 keys there are 1.2/p (p = 0.002) to 1.7/p (p = 0.05), and if all keys are distinct 2/p. When
partitions are away, their cold keys (and no others) are hashed again over those that stay.

| paper | here |
|---|---|
| t_i | `run`, the tosses of one record |
| r, l, zeta, p | the options `r`, `l`, `zeta`, `p` |
| bitvec_k_i, synopsis | `state["synopsis_bits"]`, `state["synopsis_..."]` |
| decline | `coin_flip.decline_all` |
| CBF | `state["filter"]`, `grouping.parts.sketches.counting_bloom` |

A key that makes up half of the stream turns hot, the others stay.

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> keys = np.arange(20_000, dtype=np.uint64)
>>> keys[::2] = 7
>>> grouping = create("dstream", partitions=4, seed=1)
>>> loads = np.bincount(grouping.route(keys))
>>> 7 in grouping.hot_keys().tolist()
True
>>> bool(loads.max() < 1.1 * loads.mean())
True

Reference: H. Chen, F. Zhang, H. Jin, "Popularity-aware Differentiated Distributed Stream Processing
on Skewed Streams", ICNP 2017.
"""

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from unskew.grouping.base import (
    Float64s,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.contents import require
from unskew.grouping.hashing import mix64, pick_active, salts
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.sketches import coin_flip, counting_bloom
from unskew.grouping.parts.sketches.coin_flip import (
    DRAW_STEP,
    Synopsis,
    decline_all,
    touch,
    trailing_ones,
)
from unskew.grouping.parts.sketches.counting_bloom import Filter, add, contains, remove
from unskew.grouping.snapshot import Arrays

R_DEFAULT = 6
P_DEFAULT = 0.01
P_MIN = 1e-5
P_MAX = 0.5


class DStreamParams(GroupingParams):
    """Options of DStream: what the predictor treats as hot, and how fast it forgets."""

    r: int | None = Field(default=None, ge=0, le=24, examples=[3])
    """Tosses that do not count: one record in 2^r touches the synopsis. By default 6, and one less
    (but at least 1) for each doubling of the sources, since each source then sees half as much."""
    l: int = Field(default=16, ge=2, le=32)  # noqa: E741 - the paper's name
    """Bits of a key's vector; a key that stopped leaves after at most this many shifts."""
    zeta: int = Field(default=2, ge=2, le=32)
    """Set bits from which a key is hot; at most `l`."""
    p: float = Field(default=P_DEFAULT, ge=P_MIN, le=P_MAX)
    """Chance of a vector to be shifted at each touch. A key is hot from a share of about 2p on."""
    p_times_n: float | None = Field(default=None, gt=0, le=5000, examples=[0.1])
    """Instead of `p`: p is this divided by the number of partitions, between 0.00001 and 0.5."""
    hot_keys_expected: int | None = Field(default=None, ge=1, le=1_000_000, examples=[200])
    """Hot keys the filter is made for; by default 1/p."""
    false_positive_rate: float = Field(default=0.01, ge=1e-6, le=0.5)
    """Share of the cold keys that may test as hot, with as many hot keys as expected."""
    synopsis_keys_max: int | None = Field(default=None, ge=1, le=1_000_000, examples=[1000])
    """Most keys in the synopsis, further ones get no vector; by default 4/p + 64."""

    @model_validator(mode="after")
    def _check_together(self) -> "DStreamParams":
        if self.zeta > self.l:
            raise ValueError(f"zeta: at most l, {self.l} (got {self.zeta})")
        if self.p_times_n is not None and self.p != P_DEFAULT:
            raise ValueError("p: leave it out where p_times_n is given")
        return self

    def skipped(self, sources: int) -> int:
        """The r to use with this number of sources."""
        return max(1, R_DEFAULT - round(math.log2(sources))) if self.r is None else self.r

    def decline(self, partitions: int) -> float:
        """The p to use with this number of partitions."""
        if self.p_times_n is None:
            return self.p
        return min(P_MAX, max(P_MIN, self.p_times_n / partitions))


class DStream(Grouping):
    """Differentiated grouping: the predictor's hot keys in turn, all others by hash."""

    name = "dstream"
    Params = DStreamParams
    bounds = coin_flip.BOUNDS
    checks = (coin_flip.check,)

    def __init__(self, setting: Setting, params: DStreamParams) -> None:
        super().__init__(setting, params)
        p = params.decline(setting.partitions)
        self._options = params
        # The first salt is that of key grouping: a cold key is at home where `key` would put it.
        self._home, self._filter_salt, coin, decline = salts(setting.seed, 4)
        self._hashes, cells = counting_bloom.sizes(
            params.hot_keys_expected or math.ceil(1 / p), params.false_positive_rate
        )
        self._powers = coin_flip.gap_powers(p)
        capacity = params.synopsis_keys_max or math.ceil(4 / p) + 64
        self._cooled = np.empty(capacity, np.uint64)
        # Sources toss their own coins, so that their errors are their own too.
        own = mix64(np.uint64(setting.source))
        start = setting.source * setting.partitions // setting.sources
        self.state.update(coin_flip.arrays(capacity, p, decline ^ own))
        self.state["filter"] = np.zeros(cells, np.uint32)
        self.state["coin"] = np.array([coin ^ own], np.uint64)
        self.state["turn"] = np.array([start], np.int64)

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        state, options = self.state, self._options
        _route_all(
            keys,
            self._home,
            state["active"],
            self.active,
            state["turn"],
            state["coin"],
            options.skipped(self.setting.sources),
            options.l,
            options.zeta,
            self._powers,
            Filter(state["filter"], self._hashes, self._filter_salt),
            coin_flip.view(state),
            self._cooled,
            out,
        )

    def hot_keys(self) -> UInt64s:
        """The hot keys, the one with the highest vector first."""
        synopsis = coin_flip.view(self.state)
        slots = np.flatnonzero(synopsis.hot[: synopsis.counts[coin_flip.SIZE]])
        order = np.lexsort((synopsis.keys[slots], ~synopsis.bits[slots]))
        chosen: UInt64s = synopsis.keys[slots][order]
        return chosen

    def signals(self) -> dict[str, float]:
        """Sizes of the synopsis and of the filter."""
        synopsis = coin_flip.view(self.state)
        size = int(synopsis.counts[coin_flip.SIZE])
        filled = np.count_nonzero(self.state["filter"]) / self.state["filter"].size
        return {
            "synopsis_keys": float(size),
            "synopsis_touches": float(synopsis.counts[coin_flip.TOUCHES]),
            "synopsis_refused": float(synopsis.counts[coin_flip.DROPPED]),
            "hot_keys": float(np.count_nonzero(synopsis.hot[:size])),
            "filter_false_positive_rate": float(filled**self._hashes),
        }

    def _check_state(self, state: Arrays) -> None:
        super()._check_state(state)
        synopsis = coin_flip.view(state)
        hot = synopsis.keys[: synopsis.counts[coin_flip.SIZE]]
        hot = hot[synopsis.hot[: hot.size] != 0]
        members = Filter(state["filter"], self._hashes, self._filter_salt)
        held = counting_bloom.cells_of(members, hot)
        require(np.array_equal(held, members.cells), "filter", "the hot keys, and no others")

    def _update_active(self) -> None:
        super()._update_active()
        self.state["turn"] %= self.active.size


@kernel
def _route_all(
    keys: UInt64s,
    home: np.uint64,
    mask: NDArray[np.uint8],
    active: Int32s,
    turn: Int64s,
    coin: UInt64s,
    r: int,
    l: int,  # noqa: E741 - the paper's name
    zeta: int,
    powers: Float64s,
    members: Filter,
    synopsis: Synopsis,
    cooled: UInt64s,
    out: Int32s,
) -> None:
    # A run is longer than r tosses when at least r heads come first: r ones in the lowest bits.
    heads_needed = (np.uint64(1) << np.uint64(r)) - np.uint64(1)
    state = coin[0]
    position = turn[0]
    for i in range(keys.size):
        key = keys[i]
        if contains(members, key):
            out[i] = active[position]
            position += 1
            if position == active.size:
                position = 0
        else:
            out[i] = pick_active(key, home, mask, active)
        state += DRAW_STEP
        draw = mix64(state)
        if draw & heads_needed == heads_needed:
            run = min(trailing_ones(draw) + 1, l + r)
            if touch(synopsis, key, run - r - 1, zeta):
                add(members, key)
            for j in range(decline_all(synopsis, powers, zeta, cooled)):
                remove(members, cooled[j])
    coin[0] = state
    turn[0] = position
