"""Mergeability: partials of any split, merged in any order, are exactly the direct result."""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.violations import find_mergeability_violations
from unskew.config.models.operator import OperatorOptions
from unskew.config.specs import OPERATORS
from unskew.config.types.units import Duration
from unskew.grouping.simulation.streams.key_files import hash_text
from unskew.jobs.operators.base import EVENT_TIME, KEY, KEY_HASH, PANE, RECORDS, Operator, aggregate
from unskew.jobs.operators.hashtags import Hashtags
from unskew.jobs.operators.mergeability import find_violations, shrink
from unskew.jobs.operators.paced import PacedOptions
from unskew.jobs.operators.user_code.failing_rows import OperatorError
from unskew.jobs.operators.user_code.rows import RowOperator
from unskew.jobs.operators.vwap import Vwap
from unskew.jobs.operators.word_count import WordCount

pytestmark = pytest.mark.spark

KEYS = ["", "a", "b", "ß", "🌊"]
SIX_DECIMALS = Decimal("0.000001")
Case = tuple[pa.Table, list[Any]]

ROW = st.tuples(
    st.sampled_from(KEYS),
    st.integers(-1, 1),
    st.integers(-2, 2),
    st.sampled_from([-(10**17), -1, 0, 1, 2, 10**17]),
    st.sampled_from([1, 3, 10**6, 10**8]),
    st.integers(0, 40),
)


@cache
def hash_of(key: str) -> int:
    """Spark's hash of a key."""
    return int(np.uint64(hash_text(key)).view(np.int64))


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    keys, panes, times, prices, volumes, users = zip(*rows, strict=True) if rows else [()] * 6
    decimal = pa.decimal128(18, 6)
    return pa.table(
        {
            KEY: pa.array(keys, pa.string()),
            KEY_HASH: pa.array(map(hash_of, keys), pa.int64()),
            PANE: pa.array(panes, pa.int64()),
            EVENT_TIME: pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(price) * SIX_DECIMALS for price in prices], decimal),
            "volume": pa.array([Decimal(volume) * SIX_DECIMALS for volume in volumes], decimal),
            "user_hash": pa.array(users, pa.int64()),
        }
    )


@st.composite
def small_cases(draw: st.DrawFn) -> Case:
    rows = draw(st.lists(ROW, min_size=1, max_size=12))
    pieces = st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))
    return table(rows), [np.array(way) for way in draw(st.lists(pieces, min_size=1, max_size=3))]


@st.composite
def large_cases(draw: st.DrawFn) -> Case:
    """Enough users of one key that sketches pass through all of their forms."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from([20, 300, 1_000, 8_000]))
    columns = [
        generator.choice(KEYS, size, p=[0.02, 0.9, 0.03, 0.03, 0.02]).tolist(),
        generator.integers(0, 2, size).tolist(),
        generator.integers(-(10**15), 10**16, size).tolist(),
        generator.integers(-(10**12), 10**12, size).tolist(),
        generator.integers(1, 10**12, size).tolist(),
        generator.integers(-(2**63), 2**63, size).tolist(),
    ]
    ways = [generator.integers(0, pieces, size) for pieces in (2, 16)]
    return table(list(zip(*columns, strict=True))), ways


CASES = st.tuples(
    st.lists(small_cases(), min_size=12, max_size=12),
    st.lists(large_cases(), min_size=4, max_size=4),
).map(lambda both: both[0] + both[1])


class DearestOptions(OperatorOptions):
    """The dearest trade of each key."""


class Dearest(RowOperator):
    """The dearest trade, and how many cost more than nothing."""

    Options = DearestOptions
    key = "symbol"
    inputs: Mapping[str, str] = {"price": "price"}
    partial_columns: Mapping[str, str] = {"dearest": "DECIMAL(18, 6)", "positive": "BIGINT"}
    merge: Mapping[str, str] = {"dearest": "max(dearest)", "positive": "sum(positive)"}

    def start(self) -> list[Any]:
        return [None, 0]

    def add(self, state: list[Any], row: Any) -> list[Any]:
        state[0] = row.price if state[0] is None else max(state[0], row.price)
        state[1] += row.price > 0
        return state

    def result(self, state: list[Any]) -> dict[str, Any]:
        return {"dearest": state[0], "positive": state[1]}


class DearestAlsoInSql(Dearest):
    """The same with a native form to be held against."""

    @property
    def direct(self) -> Mapping[str, str]:
        return {"dearest": "max(price)", "positive": "count_if(price > 0)"}


# Where the defaults are not what is wanted here.
OPTIONS: dict[str, OperatorOptions] = {"paced": PacedOptions(cost=Duration.parse("0 s"))}


def shipped(name: str) -> Operator:
    kind: type[Operator] = OPERATORS.load(name)
    return kind(OPTIONS.get(name) or kind.Options())


# What these compute is the user's: `test_aggregate_functions.py` has all of its functions, and
# `test_results.py` several aggregates in one job.
OF_USERS = {"aggregate", "results", "python"}
SHIPPED = {
    name: shipped(name)
    for name in OPERATORS.list_shipped_names()
    if OPERATORS.load(name).merges and name not in OF_USERS
}
MERGEABLE: dict[str, Operator] = {
    **SHIPPED,
    "dearest": Dearest(DearestOptions()),
    "dearest_in_sql": DearestAlsoInSql(DearestOptions()),
}


@pytest.mark.parametrize("name", MERGEABLE)
@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cases=CASES)
def test_any_split_in_any_order_gives_the_direct_result(
    spark: SparkSession, name: str, cases: list[Case]
) -> None:
    assert find_mergeability_violations(spark, MERGEABLE[name], cases) == []


class MeanOfMeans(Vwap):
    """Averages of averages are no average."""

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {**super().partial_columns, "mean": "DECIMAL(38, 6)"}

    def partial(self, rows: pa.Table) -> pa.Table:
        made = super().partial(rows)
        mean = pc.divide(made["amount"].cast(pa.float64()), made["volume"].cast(pa.float64()))
        return made.append_column("mean", pc.round(mean, 6).cast(pa.decimal128(38, 6)))

    @property
    def merge(self) -> Mapping[str, str]:
        return {**super().merge, "amount": "cast(avg(mean) * sum(volume) as DECIMAL(38, 12))"}


class OpenByArrival(Vwap):
    """The open is the first row that came, whatever its time."""

    def partial(self, rows: pa.Table) -> pa.Table:
        made = super().partial(rows)
        prices = rows["price"].cast(pa.float64())
        rows = rows.set_column(rows.column_names.index("price"), "price", prices)
        arrived = aggregate(rows, [("price", "first", "arrived")])["arrived"]
        opens = arrived.cast(made.schema.field("open").type)
        return made.set_column(made.column_names.index("open"), "open", opens)


class RunningEstimate(Hashtags):
    """The estimate that a sketch keeps while it is updated depends on the order of updates."""

    @property
    def final(self) -> Mapping[str, str]:
        return {**super().final, "users": "hll_sketch_estimate(users)"}


class OtherType(WordCount):
    """The same numbers in another type."""

    @property
    def direct(self) -> Mapping[str, str]:
        return {"count": "cast(count(1) as int)"}


class CountsPieces(WordCount):
    """Counts partials where it should add their records."""

    @property
    def merge(self) -> Mapping[str, str]:
        return {"count": f"count({RECORDS})"}


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (MeanOfMeans, "vwap"),
        (OpenByArrival, "vwap"),
        (RunningEstimate, "hashtags"),
        (OtherType, "word_count"),
        (CountsPieces, "word_count"),
    ],
)
def test_a_broken_operator_is_found(spark: SparkSession, broken: type[Operator], name: str) -> None:
    generator = np.random.default_rng(3)
    rows = [
        ("a", 0, time, price, 10**6, user)
        for user, (time, price) in enumerate(generator.integers(-500, 500, (2_000, 2)).tolist())
    ]
    ways = [np.zeros(2_000, np.int64), generator.integers(0, 5, 2_000)]
    case: Case = (table(rows), ways)

    assert find_mergeability_violations(spark, broken(SHIPPED[name].options), [case])
    assert not find_mergeability_violations(spark, MERGEABLE[name], [case])


class ForgetsPastThree(WordCount):
    """Counts no more than three records of a key in a piece: no pair of rows shows it."""

    def partial(self, rows: pa.Table) -> pa.Table:
        made = super().partial(rows)
        at = made.column_names.index(RECORDS)
        return made.set_column(at, RECORDS, pc.min_element_wise(made[RECORDS], pa.scalar(3)))


def test_a_counter_example_is_made_as_small_as_it_can_be(spark: SparkSession) -> None:
    rows = [(key, 0, time, 1, 1, time) for time, key in enumerate("ab" * 12)]
    ways = [np.zeros(24, np.int64), np.arange(24) // 2 % 2]
    broken, case = ForgetsPastThree(SHIPPED["word_count"].options), (table(rows), ways)
    violations, other_types = find_violations(spark, broken, [case])
    assert other_types is None
    of_two_pieces = next(each for each in violations if each.way == 1)
    example = shrink(spark, broken, case, of_two_pieces)
    kept = {rows[row][0] for row in example.rows}
    assert (kept, len(example.rows), len(set(example.pieces))) == ({of_two_pieces.key}, 4, 1)
    assert (example.merged, example.direct) == ({"count": 3}, {"count": 4})


class Spread(RowOperator):
    """The spread of a key's numbers, for which it takes two of them."""

    Options = OperatorOptions
    key = "key"
    inputs: Mapping[str, str] = {"volume": "volume"}
    partial_columns: Mapping[str, str] = {"spread": "BIGINT"}
    merge: Mapping[str, str] = {"spread": "max(spread)"}

    def start(self) -> list[int]:
        return []

    def add(self, state: list[int], row: Any) -> list[int]:
        return [*state, row.volume]

    def result(self, state: list[int]) -> dict[str, int]:
        first, second, *_ = sorted(state)
        return {"spread": second - first}


def test_an_operator_that_raises_on_a_part_of_the_rows_is_named_with_its_line(
    spark: SparkSession,
) -> None:
    rows = table([("a", 0, at, 1, at, 1) for at in (1, 2)])
    line = Spread.result.__code__.co_firstlineno + 1
    with pytest.raises(OperatorError, match=rf"operator Spread: ValueError: .*{line}\) on a row"):
        find_violations(spark, Spread(OperatorOptions()), [(rows, [np.array([0, 1])])])
