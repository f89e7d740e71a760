"""Ten million distinct keys: no grouping's state grows past what a small stream leaves it with."""

import numpy as np
import pytest

from unskew.grouping.base import Grouping
from unskew.grouping.registry import GROUPINGS, create

pytestmark = pytest.mark.slow

DISTINCT = 10_000_000
PIECE = 1 << 20
PARTITIONS = 100


def state_bytes(router: Grouping) -> int:
    return sum(array.nbytes for array in router.state.values())


def route_distinct(router: Grouping, count: int) -> None:
    """Every key once, in pieces, the times a millisecond apart."""
    for start in range(0, count, PIECE):
        numbers = np.arange(start, min(start + PIECE, count), dtype=np.uint64)
        keys = numbers * np.uint64(0x9E3779B97F4A7C15)
        router.route(keys, numbers.astype(np.int64) * 1000)


@pytest.mark.parametrize("name", GROUPINGS)
def test_ten_million_distinct_keys_do_not_grow_the_state(name: str) -> None:
    router = create(name, partitions=PARTITIONS)
    router.begin_batch()
    route_distinct(router, 100_000)
    small = state_bytes(router)
    route_distinct(router, DISTINCT)
    assert state_bytes(router) == small
