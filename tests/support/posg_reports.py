"""What the tests of POSG share: reports as rows, and a grouping that has been taught costs."""

import numpy as np

from unskew.grouping.base import Feedback, Grouping
from unskew.grouping.registry import create

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = range(4)


def executed(
    partitions: int, rows: list[tuple[int, int, float]], records: int = 1, rest: float = 0.0
) -> Feedback:
    """Rows of (partition, key, seconds), each of `records`; `rest` seconds without a row."""
    where = np.array([row[0] for row in rows], np.int32)
    seconds = np.array([row[2] for row in rows], np.float64)
    return Feedback(
        np.bincount(where, minlength=partitions).astype(np.int64) * records,
        np.bincount(where, seconds, partitions) + rest,
        where,
        np.array([row[1] for row in rows], np.uint64),
        np.full(len(rows), records, np.int64),
        seconds,
    )


def route(posg: Grouping, keys: list[int], times: list[int] | None = None) -> list[int]:
    stamps = None if times is None else np.array(times, np.int64)
    return posg.route(np.array(keys, np.uint64), stamps).tolist()


def scheduler_state(posg: Grouping) -> int:
    return int(posg.signals()["scheduler_state"])


def taught(costs: list[list[float]], **options: object) -> Grouping:
    """In SEND_ALL, each instance's costs of the keys 0, 1, ... known exactly."""
    n, keys = len(costs), len(costs[0])
    posg = create("posg", partitions=n, seed=1, epsilon=0.005, window=keys, **options)
    rows = [(p, key, costs[p][key]) for p in range(n) for _ in range(2) for key in range(keys)]
    posg.begin_batch(executed(n, rows))
    return posg
