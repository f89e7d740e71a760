"""D-Choices: a hot key may go to d partitions, d as small as balance allows; a cold one to two.

SpaceSaving finds the head (see `grouping.parts.heads`). From the shares of its keys follows d: for
every prefix of the h hottest keys, the partitions that their h d choices reach, b_h of them on
average, must be able to carry those keys and all keys whose choices fall within them:

    sum(i <= h) p_i + (b_h/n)^d sum(h < i <= |H|) p_i + (b_h/n)^2 sum(i > |H|) p_i
        <= b_h (1/n + epsilon)

with b_h = n - n ((n-1)/n)^(h d). d is the least number, from max(2, ceil(p1 n)), for which this
holds for all h; from d = n on all partitions are used, as in W-Choices. A record goes to the least
loaded of its key's candidates. At most `d |H| + 2 |tail|` pairs; the imbalance over s sources is
expected to be about s epsilon. Costs a look into the table and d loads for a hot record, two hashes
for a cold one. State: 68 bytes a counter (4/theta = 20 n of them) and 8 a partition; the candidates
of hot keys are kept beside it, 4 MiB or 64 keys' at most.

The inequality is necessary, not sufficient: it counts only keys whose choices fall *all* within the
prefix's. Where a few hot keys overlap in part, its d is too small. Of the paper's cells this is
Zipf z = 1.2 with n = 10 (10^4 keys, d = 3: imbalance 1e-5 to 7e-3 by seed, median 3e-3) and, with
independent hashes, n = 5 (d = 2: 1e-2). `raise_choices: true` closes such cells: d is raised by one
as often as the source sees its own imbalance grow above epsilon.

Departures:
- The margin against false heads (`grouping.parts.heads`).
- The candidates of a key are all different partitions; d is still the inequality's, which expects
  only b_1 < d of them. With independent hashes, how many distinct partitions a key gets varies;
  where the capacity of b_1 partitions is just enough for the first key, half of the seeds have
  less: imbalances of 1e-3 to 3e-3 at n = 20, z = 1.6 to 1.9, and n = 50, z = 1.0 to 1.6, that are
  1e-5 this way. The pairs stay below the paper's own bound, d |H| + 2 |tail|.
- The paper solves for d with every record; here it is solved again when the source has seen an
  eighth more records (at least 32, at most 100,000), and with every micro-batch.
- `memory: batch` lets loads begin at zero in every micro-batch, and the counts fade by `decay`
  (`grouping.parts.heads`). With a single batch, or `memory: stream`, both are the paper's.
- Of several sources with few records a partition each, a record whose candidates are all full goes
  to the least loaded partition of all (`grouping.parts.small_shares`).

| paper | here |
|---|---|
| W, n | the active partitions, how many |
| H, theta | `hot_keys()`, `theta` |
| UPDATESPACESAVING | `mark_head` (grouping.parts.heads): count the key, then test it for the head |
| p_i | guaranteed count / records of this source |
| d, FINDOPTIMALCHOICES | `choices`, `solve_choices` (grouping.parts.choices) |
| inequality (3), epsilon | `_holds` (grouping.parts.choices), `epsilon` |
| b_h | n times `reached` in `_holds` |
| F_1, F_2 of a cold key | `two_choices` (grouping.parts.two_choices) |
| F_1 ... F_d of a hot key | `fill`: the two, then `draw_another` with salt i |
| Algorithm 1 | `_route_marked` |
| MINLOAD | of two `less_loaded_of_two`, of d `_least_candidate`, of n `find_least_loaded` |
| L_w | `state["loads"]` |

>>> import numpy as np
>>> solve_choices(np.array([0.2, 0.1]), 50, 1e-4)
14

Reference: M. A. U. Nasir, G. De Francisci Morales, N. Kourtellis, M. Serafini, "When two choices
are not enough: balancing at scale in distributed stream processing", ICDE 2016.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from unskew.grouping.base import (
    PARTITIONS_MAX,
    Feedback,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.kernels import borrowing_kernel, kernel
from unskew.grouping.parts.choices import EPSILON, solve_choices
from unskew.grouping.parts.small_shares import SmallShareGrouping, SmallShareParams
from unskew.grouping.parts.two_choices import (
    UInt8s,
    draw_another,
    find_least_loaded,
    less_loaded_of_two,
    two_choices,
)

_GROWTH = 8
_RECORDS_LEAST = 32
_RECORDS_MAX = 100_000
_CACHE_ENTRIES = 1 << 20
_CACHE_ROWS_LEAST = 64
_NOISE = 3


class Cache(NamedTuple):
    """Candidates of hot keys, by row; they follow from the state, so a cache changes no route."""

    keys: UInt64s
    sizes: Int32s
    """How many candidates; 0: the row is free."""
    candidates: NDArray[np.int32]
    levels: Int64s
    """A load that no candidate of the row is below."""
    positions: Int32s
    """Before this one all candidates of the row are above its level."""
    taken: UInt8s
    """Scratch, by partition."""


class _Partitions(NamedTuple):
    """The partitions as a source sees them."""

    loads: Int64s
    mask: UInt8s
    active: Int32s
    order: Int32s
    least: Int64s
    """Where `find_least_loaded` stopped."""
    full: int


class DChoicesParams(SmallShareParams):
    """Options of D-Choices."""

    epsilon: float = Field(default=EPSILON, gt=0.0, le=1.0)
    """Imbalance, (max - mean) / records, that one source may make."""
    choices: Annotated[int, Field(ge=2, le=PARTITIONS_MAX)] | None = Field(None, examples=[5])
    """d, fixed, as in the search for the least d that balances. Without it the inequality gives d
    from the head's shares and `epsilon`."""
    raise_choices: bool = False
    """Raise d above what the inequality asks for while this source's own imbalance grows above
    epsilon. Off is the paper's."""

    @model_validator(mode="after")
    def _fixed_or_raised(self) -> Self:
        if self.choices is not None and self.raise_choices:
            raise ValueError(
                f"raise_choices and choices exclude each other (got true and {self.choices})"
            )
        return self


class DChoices(SmallShareGrouping):
    """d partitions for the head, two choices for the tail."""

    name = "d_choices"
    Params = DChoicesParams
    params: DChoicesParams

    def __init__(self, setting: Setting, params: DChoicesParams) -> None:
        super().__init__(setting, params, candidates=max(2, setting.partitions))
        # Choices now, records after which to solve again, choices added, worst excess seen.
        self.state["choices"] = np.array([2, 0, 0, 0], np.int64)
        self._first = setting.source / setting.sources
        partitions = setting.partitions
        rows = max(_CACHE_ROWS_LEAST, _CACHE_ENTRIES // partitions)
        rows = min(1 << (rows.bit_length() - 1), 1 << (self.counters.keys.size - 1).bit_length())
        self._cache = Cache(
            keys=np.zeros(rows, np.uint64),
            sizes=np.zeros(rows, np.int32),
            candidates=np.empty((rows, partitions), np.int32),
            levels=np.zeros(rows, np.int64),
            positions=np.zeros(rows, np.int32),
            taken=np.zeros(partitions, np.uint8),
        )

    @property
    def choices(self) -> int:
        """How many candidates a key of the head has."""
        return min(int(self.state["choices"][0]), self.active.size)

    def set_active(self, partitions: Sequence[int]) -> None:
        """Route only to these partitions from now on, with the d that they need."""
        super().set_active(partitions)
        self.state["choices"][1] = self.state["seen"][0]

    def _begin_batch(self, feedback: Feedback | None) -> None:
        super()._begin_batch(feedback)
        self.state["choices"][1] = self.state["seen"][0]
        if self.params.memory == "batch":
            self.state["choices"][3] = 0

    def _forget_least(self) -> None:
        super()._forget_least()
        self._cache.sizes[:] = 0

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        state, start = self.state, 0
        while start < keys.size:
            seen, due = int(state["seen"][0]), int(state["choices"][1])
            if seen >= due:
                self._solve(seen)
                due = int(state["choices"][1])
            part = slice(start, min(keys.size, start + due - seen))
            hot, first = self._mark_head(keys[part]), int(self._first * self.choices)
            partitions, salts_ = self._partitions, self._salts
            _route_marked(
                keys[part], hot, self.choices, first, salts_, partitions, self._cache, out[part]
            )
            start = part.stop

    @property
    def _partitions(self) -> _Partitions:
        loads, mask = self.state["loads"], self.state["active"]
        return _Partitions(loads, mask, self.active, self._order, self._least, self.full)

    def _solve(self, seen: int) -> None:
        """Find d from the head as it is now."""
        choices = self.state["choices"]
        choices[1] = seen + min(max(_RECORDS_LEAST, seen // _GROWTH), _RECORDS_MAX)
        before, n = self.choices, self.active.size
        if self.params.raise_choices and choices[0] < n:
            self._raise()
        if self.params.choices is not None:
            choices[0] = min(n, self.params.choices)
        else:
            shares = self._head()[1]
            choices[0] = min(n, solve_choices(shares, n, self.params.epsilon) + int(choices[2]))
        if self.choices != before:
            self._cache.sizes[:] = 0

    def _raise(self) -> None:
        choices, loads = self.state["choices"], self.state["loads"][self.active]
        excess = int(loads.max() - loads.sum() // loads.size)
        if excess > max(choices[3], self.params.epsilon * loads.sum() + _NOISE):
            choices[2] += 1
            choices[3] = excess


@borrowing_kernel
def _route_marked(
    keys: UInt64s,
    hot: Int32s,
    choices: int,
    first: int,
    salts_: UInt64s,
    partitions: _Partitions,
    cache: Cache,
    out: Int32s,
) -> None:
    """Algorithm 1 for keys of which `hot` has the counter, or -1."""
    loads, mask, active = partitions.loads, partitions.mask, partitions.active
    candidates, sizes = cache.candidates, cache.sizes
    levels, positions = cache.levels, cache.positions
    for i in range(keys.size):
        if hot[i] < 0 or choices == 2:
            partition = less_loaded_of_two(keys[i], loads, salts_, mask, active)
        elif choices >= active.size:
            partition = find_least_loaded(loads, partitions.order, partitions.least)
        else:
            row = hot[i] & (cache.keys.size - 1)
            if sizes[row] == 0 or cache.keys[row] != keys[i]:
                _remember(cache, row, keys[i], choices, first, salts_, mask, active)
            partition = _least_candidate(candidates, row, sizes[row], loads, levels, positions)
        if loads[partition] >= partitions.full:
            partition = find_least_loaded(loads, partitions.order, partitions.least)
        loads[partition] += 1
        out[i] = partition


@kernel
def _least_candidate(
    candidates: NDArray[np.int32],
    row: int,
    size: int,
    loads: Int64s,
    levels: Int64s,
    positions: Int32s,
) -> np.int64:
    """The first least loaded candidate: loads only grow, so the search goes on where it stopped."""
    level, position = levels[row], positions[row]
    while position < size and loads[candidates[row, position]] != level:
        position += 1
    if position == size:
        level = loads[candidates[row, 0]]
        for j in range(1, size):
            level = min(level, loads[candidates[row, j]])
        position = 0
        while loads[candidates[row, position]] != level:
            position += 1
        levels[row] = level
    positions[row] = position
    return np.int64(candidates[row, position])


@kernel
def _remember(
    cache: Cache,
    row: int,
    key: np.uint64,
    choices: int,
    first: int,
    salts_: UInt64s,
    mask: UInt8s,
    active: Int32s,
) -> None:
    cache.keys[row] = key
    cache.sizes[row] = fill(cache.candidates[row], key, choices, salts_, mask, active, cache.taken)
    rotate(cache.candidates[row], choices, first)
    cache.levels[row], cache.positions[row] = -1, 0


@kernel
def fill(
    row: Int32s,
    key: np.uint64,
    choices: int,
    salts: UInt64s,
    mask: UInt8s,
    active: Int32s,
    taken: UInt8s,
) -> int:
    """Write the first `choices` candidates of `key`, all different; `taken` is and stays zero."""
    row[0], row[1] = two_choices(key, salts, mask, active)
    taken[row[0]] = 1
    taken[row[1]] = 1
    for j in range(2, choices):
        row[j] = draw_another(key, salts[j], mask, active, taken)
        taken[row[j]] = 1
    for j in range(choices):
        taken[row[j]] = 0
    return choices


@kernel
def rotate(row: Int32s, size: int, first: int) -> None:
    """Let the first `size` candidates begin with number `first`: the one that wins among equals."""
    if first > 0:
        row[:size] = np.roll(row[:size], -first)
