"""`vwap`: the volume-weighted average price of each symbol, in exact decimals.

Prices and volumes have 18 digits, `price_decimals` and `volume_decimals` of them behind the point;
their product has 37, its sum 38. A trade whose amount leaves less than twelve digits for summing is
rejected, so that a sum of up to 10^12 trades cannot overflow. Nothing is ever a float; one that
comes in is rounded half up to the decimals once, before anything is added.

The average has the decimals of a price, at least six, rounded half up. Prices may be negative, as
those of spreads and of energy are. A trade of no volume is rejected: nothing changed hands, so its
price must not become a high, a low, an open or a close. Of the first trades at the same event time
the cheapest is the open, of the last ones the dearest is the close.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from unskew.config.models.base import Expression
from unskew.config.models.operator import OperatorOptions
from unskew.grouping.base import Int64s
from unskew.grouping.kernels import kernel
from unskew.jobs.operators.base import EVENT_TIME, NUMBER, RECORDS, Operator, aggregate

if TYPE_CHECKING:
    import pyarrow as pa

_DIGITS = 18
_SUM_DIGITS = 38
_ADDED_DIGITS = 12
_VAST = r"r'[eE][+-]?\p{Nd}{4}'"
_AGGREGATIONS = (
    ("amount", "sum", "amount"),
    ("volume", "sum", "volume"),
    ("price", "max", "high"),
    ("price", "min", "low"),
)


class VwapOptions(OperatorOptions):
    """Volume-weighted average price of each symbol."""

    symbol: Expression = "symbol"
    """The traded symbol, as an SQL expression: the key."""
    price: Expression = "price"
    """The price of a trade, as an SQL expression."""
    volume: Expression = "volume"
    """How much was traded, as an SQL expression: more than 0."""
    price_decimals: Annotated[int, Field(ge=0, le=8)] = 6
    """Decimals of a price, of 18 digits in all. A number with more is rounded half up if it is a
    float, and rejected if it is exact."""
    volume_decimals: Annotated[int, Field(ge=0, le=8)] = 6
    """Decimals of a volume, of 18 digits in all, by the same rule."""


class Vwap(Operator):
    """The sum of price times volume over the sum of volume."""

    Options = VwapOptions
    options: VwapOptions

    @property
    def key(self) -> str:
        return f"cast({self.options.symbol} as string)"

    @property
    def inputs(self) -> Mapping[str, str]:
        return {
            "price": _cast_to_decimal(self.options.price, self.options.price_decimals),
            "volume": _cast_to_decimal(self.options.volume, self.options.volume_decimals),
        }

    @property
    def reject_rules(self) -> Mapping[str, str]:
        price, volume = self.inputs["price"], self.inputs["volume"]
        decimals = self.options.price_decimals + self.options.volume_decimals
        amount_end = 10 ** (_SUM_DIGITS - _ADDED_DIGITS - decimals)
        return {
            **_number_rules("price", self.options.price, price, self.options.price_decimals),
            **_number_rules("volume", self.options.volume, volume, self.options.volume_decimals),
            "volume_negative": f"{volume} < 0",
            "volume_zero": f"{volume} = 0",
            # The product of decimals is dear: floats say first whether it can be that large.
            "amount_out_of_range": (
                f"abs(double({price}) * double({volume})) > {amount_end // 2}D"
                f" and abs({price} * {volume}) >= {amount_end}BD"
            ),
        }

    @property
    def partial_columns(self) -> Mapping[str, str]:
        price = f"DECIMAL({_DIGITS}, {self.options.price_decimals})"
        return {
            "amount": f"DECIMAL({_SUM_DIGITS}, {self._amount_decimals})",
            "volume": f"DECIMAL({_SUM_DIGITS}, {self.options.volume_decimals})",
            "high": price,
            "low": price,
            "open_time": "TIMESTAMP",
            "open": price,
            "close_time": "TIMESTAMP",
            "close": price,
        }

    @property
    def _amount_decimals(self) -> int:
        return self.options.price_decimals + self.options.volume_decimals

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """Arrow adds the decimals; a kernel finds the rows that open and close each group."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from unskew.jobs.operators.arrow import number_groups, read_numbers, unscale

        amounts = pc.multiply(rows["price"], rows["volume"])
        rows = number_groups(rows.append_column("amount", amounts))
        partials = aggregate(rows, [*_AGGREGATIONS, (NUMBER, "min", NUMBER)])
        times = rows[EVENT_TIME].to_numpy().astype("datetime64[us]").astype(np.int64)
        first_and_last = np.empty((2, partials.num_rows), np.int64)
        _first_and_last(read_numbers(rows), times, unscale(rows["price"]), first_and_last)
        for name, row_of_group in zip(("open", "close"), first_and_last, strict=True):
            chosen = pa.array(row_of_group[read_numbers(partials)])
            partials = partials.append_column(f"{name}_time", rows[EVENT_TIME].take(chosen))
            partials = partials.append_column(name, rows["price"].take(chosen))
        return partials

    @property
    def merge(self) -> Mapping[str, str]:
        return {
            "amount": "sum(amount)",
            "volume": "sum(volume)",
            "trades": f"sum({RECORDS})",
            "high": "max(high)",
            "low": "min(low)",
            "open": "min(struct(open_time, open)).open",
            "close": "max(struct(close_time, close)).close",
        }

    @property
    def direct(self) -> Mapping[str, str]:
        return {
            "amount": "sum(price * volume)",
            "volume": "sum(volume)",
            "trades": "count(1)",
            "high": "max(price)",
            "low": "min(price)",
            "open": f"min(struct({EVENT_TIME}, price)).price",
            "close": f"max(struct({EVENT_TIME}, price)).price",
        }

    @property
    def final(self) -> Mapping[str, str]:
        volume = f"cast(volume as {self.partial_columns['volume']})"
        kept = {name: name for name in ("trades", "high", "low", "open", "close")}
        return {"vwap": f"amount / {volume}", "volume": volume, **kept}


def _cast_to_decimal(expression: str, decimals: int) -> str:
    return _cast(expression, f"DECIMAL({_DIGITS}, {decimals})")


def _cast(expression: str, kind: str) -> str:
    """A text such as `1e-100000000` is no number: Spark would take minutes to write it out."""
    text = f"cast(({expression}) as string)"
    vast = f"typeof({expression}) = 'string' and (length({text}) > 1000 or {text} rlike {_VAST})"
    return f"if({vast}, null, try_cast(({expression}) as {kind}))"


def _number_rules(name: str, expression: str, decimal: str, decimals: int) -> dict[str, str]:
    """Why an expression is not a decimal of the stated precision.

    What depends on its type alone is a constant to Spark: a rule that cannot apply costs nothing.
    """
    kind = f"typeof({expression})"
    number = f"try_cast(({expression}) as DOUBLE)"
    exact = _cast(expression, "DECIMAL(38, 18)")
    own_decimals = f"try_cast(regexp_extract({kind}, ',([0-9]+)', 1) as int)"
    return {
        f"{name}_null": f"({expression}) is null",
        f"{name}_not_a_number": (
            f"{kind} in ('float', 'double', 'string') and ({number} is null or isnan({number}))"
        ),
        f"{name}_out_of_range": f"{decimal} is null",
        f"{name}_too_precise": (
            f"{kind} not in ('float', 'double', 'tinyint', 'smallint', 'int', 'bigint')"
            f" and coalesce({own_decimals} > {decimals}, true) and {decimal} <> {exact}"
        ),
    }


@kernel
def _first_and_last(
    numbers: Int64s, times: Int64s, prices: Int64s, ends: npt.NDArray[np.int64]
) -> None:
    """Find each group's rows with the least and the greatest (time, price)."""
    ends[:] = -1
    for row in range(numbers.size):
        number = numbers[row]
        first, last = ends[0, number], ends[1, number]
        if first < 0:
            ends[0, number] = ends[1, number] = row
            continue
        time, price = times[row], prices[row]
        if time < times[first] or (time == times[first] and price < prices[first]):
            ends[0, number] = row
        if time > times[last] or (time == times[last] and price > prices[last]):
            ends[1, number] = row
