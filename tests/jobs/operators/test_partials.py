"""What partials hold, without Spark: times, sketches, paced seconds, rows one by one."""

import time
from collections.abc import Mapping
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from datasketches import hll_sketch
from pyspark.sql import SparkSession

from unskew.config.models.operator import OperatorOptions
from unskew.config.specs import OPERATORS
from unskew.config.types.units import Duration
from unskew.jobs.operators.arrow import number_groups, read_numbers, unscale
from unskew.jobs.operators.hashtags import Hashtags, HashtagsOptions
from unskew.jobs.operators.paced import Paced, PacedOptions
from unskew.jobs.operators.user_code.rows import RowOperator
from unskew.jobs.operators.vwap import Vwap, VwapOptions

PRICE = pa.decimal128(18, 6)


def rows(keys: list[str], panes: list[int] | None = None, **columns: pa.Array) -> pa.Table:
    """Prepared rows; a key's hash is its length, its time its place."""
    return pa.table(
        {
            "key": pa.array(keys, pa.string()),
            "key_hash": pa.array([len(key) for key in keys], pa.int64()),
            "pane": pa.array(panes or [0] * len(keys), pa.int64()),
            "event_time": pa.array(range(len(keys)), pa.int64()).cast(pa.timestamp("us", "UTC")),
            **columns,
        }
    )


def prices(*texts: str) -> pa.Array:
    return pa.array([Decimal(text) for text in texts], PRICE)


def paced(**options: object) -> Paced:
    return Paced(PacedOptions.model_validate(options))


def test_groups_are_numbered_as_they_come() -> None:
    made = number_groups(rows(["b", "a", "b", "b"], [0, 0, 1, 0]))

    assert read_numbers(made).tolist() == [0, 1, 2, 0]


def test_decimals_are_whole_numbers_of_their_last_digit() -> None:
    column = pa.chunked_array([prices("-0.000001", "999999999999.999999"), prices("0", "1.5")])

    assert unscale(column).tolist() == [-1, 10**18 - 1, 0, 1_500_000]
    assert unscale(column.slice(1, 2)).tolist() == [10**18 - 1, 0]


# What needs options has tests of its own.
@pytest.mark.parametrize("name", ["word_count", "vwap", "hashtags", "paced"])
def test_no_rows_make_no_partials(name: str) -> None:
    operator = OPERATORS.load(name)
    none = rows([], price=prices(), volume=prices(), user_hash=pa.array([], pa.int64()))

    assert operator(operator.Options()).partial(none).num_rows == 0


def test_open_and_close_are_by_time_and_then_by_price() -> None:
    same = pa.array([5, 5, 5, 5], pa.int64()).cast(pa.timestamp("us", "UTC"))
    trades = rows(
        ["a"] * 4, price=prices("3", "1", "4", "2"), volume=prices("1", "1", "1", "1")
    ).set_column(3, "event_time", same)

    made = Vwap(VwapOptions()).partial(trades).to_pylist()[0]

    assert [made[name] for name in ("open", "close", "high", "low")] == [1, 4, 4, 1]
    assert made["amount"] == 10


def test_sums_of_the_largest_trades_are_exact() -> None:
    price, volume = "9999999.999999", "9999999.999999"
    count = 50_000
    trades = rows(["a"] * count, price=prices(*[price] * count), volume=prices(*[volume] * count))

    made = Vwap(VwapOptions()).partial(trades).to_pylist()[0]

    with localcontext(prec=50):
        assert made["amount"] == Decimal("99999999999980.000000000001") * count
        assert made["volume"] == Decimal(volume) * count


def test_a_sketch_counts_each_user_of_a_hashtag_once() -> None:
    users = np.tile(np.arange(-150, 150), 3)
    keys = ["even" if user % 2 == 0 else "odd" for user in users]
    made = Hashtags(HashtagsOptions()).partial(rows(keys, user_hash=pa.array(users)))

    by_key = {row["key"]: row for row in made.to_pylist()}
    assert {key: row["records"] for key, row in by_key.items()} == {"even": 450, "odd": 450}
    for row in by_key.values():
        assert round(hll_sketch.deserialize(row["users"]).get_estimate()) == 150


@pytest.mark.parametrize("spend", ["sleep", "burn"])
def test_paced_takes_the_declared_time_and_says_which_key_took_it(spend: str) -> None:
    operator = paced(cost="1 ms", spend=spend, class_factors=[1.0, 3.0], partition_factors={0: 2.0})
    started = time.perf_counter()
    # Lengths 1, 1 and 2: classes 1, 1 and 0.
    made = operator.partial(rows(["a", "a", "bb"]))
    taken = time.perf_counter() - started

    due = 2 * (2 * 3 + 1) / 1_000
    seconds = dict(zip(made["key"].to_pylist(), made["seconds"].to_pylist(), strict=True))
    assert due <= sum(seconds.values()) <= taken
    assert seconds["a"] == pytest.approx(6 * seconds["bb"])


def test_a_free_record_takes_no_time() -> None:
    made = paced(cost=Duration.parse("0 s")).partial(rows(["a"]))

    assert made["seconds"].to_pylist() == [0.0]


class Characters(RowOperator):
    """The letters of each key's texts, in the order in which they came."""

    Options = OperatorOptions
    key = "key"
    inputs: Mapping[str, str] = {"text": "text"}
    partial_columns: Mapping[str, str] = {"letters": "ARRAY<STRING>", "until": "TIMESTAMP"}
    merge: Mapping[str, str] = {"letters": "array_sort(flatten(collect_list(letters)))"}

    def start(self) -> dict[str, list[object]]:
        return {"letters": [], "until": []}

    def add(self, state: dict[str, list[object]], row: object) -> dict[str, list[object]]:
        state["letters"] += row.text
        state["until"] = row.event_time
        time.sleep(0.05 if row.key == "slow" else 0)
        return state

    def result(self, state: dict[str, list[object]]) -> dict[str, object]:
        return state


@pytest.mark.spark
def test_rows_reach_a_users_operator_in_order_and_are_timed(spark: SparkSession) -> None:
    texts = pa.array(["ab", "x", "c"])
    made = Characters(OperatorOptions()).partial(rows(["quick", "slow", "quick"], text=texts))

    by_key = {row["key"]: row for row in made.to_pylist()}
    assert {key: row["letters"] for key, row in by_key.items()} == {
        "quick": ["a", "b", "c"],
        "slow": ["x"],
    }
    assert by_key["quick"]["until"].microsecond == 2
    assert by_key["slow"]["seconds"] >= 0.05
    assert by_key["quick"]["seconds"] > 0
