"""Sketches of Apache DataSketches: made by Arrow and Python, merged by Spark's own functions.

| in YAML | partial | merged by |
|---|---|---|
| `distinct` | HLL of 2^12 registers in 8 bits, of 64-bit hashes | `hll_union_agg` |
| `quantiles` | KLL of doubles | `kll_merge_agg_double` |
| `top` | none | `approx_top_k`, with plain Spark only |

An HLL sketch is the same for any split and order of the rows. A KLL sketch is not: to stay small it
keeps every second of its sorted values, and which of the two is chance. `datasketches` draws that
from the machine, so that a task that ran twice would send other bytes. Here a partial's sketch is
made from all values of the group at once, sorted: of n values it keeps every 2^h-th, such that at
most k are left. So it depends on the values alone, and its error, at most n / k ranks, is certain.
What is left over is chance in Spark's merge, within the bound that KLL promises.
"""

import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from unskew.grouping.base import Float64s, Int64s
from unskew.jobs.operators.aggregates.function import (
    FLOATS,
    INTEGERS,
    Function,
    TypeProblem,
    read_decimal_type,
)
from unskew.jobs.operators.base import NUMBER

if TYPE_CHECKING:
    import pyarrow as pa

REGISTERS_LOG2 = 12
_KLL_FAMILY = 15
_KLL_M = 8
_KLL_EMPTY, _KLL_LEVEL_ZERO_SORTED, _KLL_SINGLE = 1, 2, 4


@dataclass(frozen=True)
class Distinct(Function):
    """`distinct: x`: an estimate of the number of distinct values that are not null."""

    grouped = True

    @property
    def inputs(self) -> Mapping[str, str]:
        return {self.name: f"if(({self.argument}) is null, null, xxhash64({self.argument}))"}

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: "binary"}

    def add(self, rows: "pa.Table", partials: "pa.Table") -> "pa.Table":
        import pyarrow.compute as pc

        valid = rows.select([NUMBER, self.name]).filter(pc.is_valid(rows[self.name]))
        pairs = valid.group_by([NUMBER, self.name], use_threads=False).aggregate([])
        pairs = pairs.take(pc.sort_indices(pairs[NUMBER]))
        numbers = pairs[NUMBER].to_numpy().astype(np.int64)
        sketches = make_hll_sketches(numbers, pairs[self.name].to_numpy(), partials.num_rows)
        return partials.append_column(self.name, sketches)

    @property
    def merge(self) -> Mapping[str, str]:
        return {self.name: f"hll_union_agg({self.name})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {self.name: f"hll_sketch_agg({self.name}, {REGISTERS_LOG2})"}

    @property
    def final(self) -> str:
        # Of a union, as the estimate of a sketch that was updated depends on the order.
        return f"hll_sketch_estimate(hll_union({self.name}, {self.name}))"


@dataclass(frozen=True)
class Quantiles(Function):
    """`quantiles: x, at: [...]`: values with about such a share of the others below them."""

    at: tuple[float, ...] | float = 0.5
    k: int = 200
    grouped = True

    @property
    def inputs(self) -> Mapping[str, str]:
        return {self.name: f"cast(({self.argument}) as double)"}

    @property
    def reject_rules(self) -> Mapping[str, str]:
        return {"not_a_number": f"isnan({self.inputs[self.name]})"}

    def describe_type_problem(self) -> TypeProblem | None:
        if self.kind in (*INTEGERS, *FLOATS) or read_decimal_type(self.kind):
            return None
        return TypeProblem(f"a number (got {self.kind.upper()})", "quantiles are those of numbers")

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: "binary"}

    def add(self, rows: "pa.Table", partials: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        valid = rows.select([NUMBER, self.name]).filter(pc.is_valid(rows[self.name]))
        order = pc.sort_indices(valid, sort_keys=[(NUMBER, "ascending"), (self.name, "ascending")])
        ordered = valid.take(order)
        numbers = ordered[NUMBER].to_numpy().astype(np.int64)
        bounds = np.searchsorted(numbers, np.arange(partials.num_rows + 1)).tolist()
        values = ordered[self.name].to_numpy()
        sketches = [write_kll_sketch(values[begin:end], self.k) for begin, end in pairwise(bounds)]
        return partials.append_column(self.name, pa.array(sketches, pa.binary()))

    @property
    def merge(self) -> Mapping[str, str]:
        return {self.name: f"kll_merge_agg_double({self.name}, {self.k})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {self.name: f"kll_sketch_agg_double({self.name}, {self.k})"}

    @property
    def final(self) -> str:
        if isinstance(self.at, tuple):
            shares = f"array({', '.join(f'{share}D' for share in self.at)})"
        else:
            shares = f"{self.at}D"
        value = f"kll_sketch_get_quantile_double({self.name}, {shares})"
        return f"if(kll_sketch_get_n_double({self.name}) = 0, null, {value})"


@dataclass(frozen=True)
class Top(Function):
    """`top: x, k: 10`: the most frequent values, with estimates of how often each occurs."""

    k: int = 10
    has_partials = False

    @property
    def partial_columns(self) -> Mapping[str, str]:
        raise NotImplementedError("top has no partial: checked by top_needs_plain_spark")

    @property
    def merge(self) -> Mapping[str, str]:
        raise NotImplementedError("top has no merge: checked by top_needs_plain_spark")

    @property
    def direct(self) -> Mapping[str, str]:
        return {self.name: f"approx_top_k({self.name}, {self.k}, {max(1_000, 20 * self.k)})"}


def make_hll_sketches(numbers: Int64s, hashes: Int64s, groups: int) -> "pa.Array":
    """Make the HLL sketch of each group, from pairs in the order of `numbers`."""
    import pyarrow as pa

    bounds = np.searchsorted(numbers, np.arange(groups + 1)).tolist()
    sketches = [make_hll_sketch(hashes[begin:end].tolist()) for begin, end in pairwise(bounds)]
    return pa.array([sketch.serialize_compact() for sketch in sketches], pa.binary())


def make_hll_sketch(hashes: Iterable[int]) -> Any:
    """Make the HLL sketch of these hashes."""
    from datasketches import hll_sketch, tgt_hll_type

    sketch = hll_sketch(REGISTERS_LOG2, tgt_hll_type.HLL_8)
    deque(map(sketch.update, hashes), maxlen=0)
    return sketch


def write_kll_sketch(values: Float64s, k: int) -> bytes:
    """Write a KLL sketch of sorted values, as DataSketches writes those of doubles.

    Level h holds every 2^h-th value, of weight 2^h, taken from the middle of its stretch; of the
    values that are left over, the level of each bit of their number holds one.
    """
    size = values.size
    if size < 2:
        flags = _KLL_SINGLE if size else _KLL_EMPTY
        head = struct.pack("<BBBBHBB", 2, 1 + size, _KLL_FAMILY, flags, k, _KLL_M, 0)
        return head + values.astype("<f8").tobytes()
    height = max(0, (-(-size // k) - 1).bit_length())
    levels = _split_levels(values, height)
    ends = np.cumsum([level.size for level in levels])
    free = _compute_kll_capacity(k, height + 1) - int(ends[-1])
    begins = free + ends - [level.size for level in levels]
    flags = _KLL_LEVEL_ZERO_SORTED
    head = struct.pack(
        "<BBBBHBBQHBB", 5, 1, _KLL_FAMILY, flags, k, _KLL_M, 0, size, k, height + 1, 0
    )
    ends_of_all = np.array([values[0], values[-1]], "<f8").tobytes()
    kept = np.concatenate(levels).astype("<f8").tobytes()
    return head + begins.astype("<u4").tobytes() + ends_of_all + kept


def _split_levels(values: Float64s, height: int) -> list[Float64s]:
    """Split the values into levels, lowest first: together of the weight of all values."""
    whole = values.size >> height << height
    # Spread over all values, so that what is left over is not the greatest alone.
    rest = values.size - whole
    spread = (np.arange(rest) * values.size // max(rest, 1)) + values.size // (2 * max(rest, 1))
    kept = np.ones(values.size, bool)
    kept[spread] = False
    over, main = values[spread], values[kept]
    levels = []
    for level in range(height):
        weight = 1 << level
        take = weight if rest & weight else 0
        levels.append(over[take // 2 : take][:1] if take else over[:0])
        over = over[take:]
    stride = 1 << height
    return [*levels, main[stride // 2 :: stride]]


def _compute_kll_capacity(k: int, levels: int) -> int:
    """Compute how many values a sketch with this number of levels has room for."""
    return sum(_compute_kll_level_capacity(k, depth) for depth in range(levels))


def _compute_kll_level_capacity(k: int, depth: int) -> int:
    """Room of the level so far below the top: k, and two thirds of it a level, rounded."""
    scaled: int = (((k << 1) << depth) // 3**depth + 1) >> 1
    return max(_KLL_M, scaled)
