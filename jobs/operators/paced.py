"""`paced`: counts, and takes a declared time for each record. For benchmarks.

The time is slept, so that sixteen slots on two cores are sixteen, or burnt as processor time. It is
spent where a costly operator would spend it, after the shuffle, and so also with `grouping: none`,
where Spark's own hash of the key decides the partition.
"""

import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from unskew.config.models.operator import Paced as PacedOptions
from unskew.grouping.base import Float64s
from unskew.grouping.spark.route import task_position
from unskew.jobs.operators.base import KEY_HASH, RECORDS, SECONDS, Operator, aggregate
from unskew.jobs.operators.word_count import words_of


class Paced(Operator):
    """Counts records, slowly."""

    Options = PacedOptions
    options: PacedOptions
    native = False

    def __init__(self, options: PacedOptions) -> None:
        super().__init__(options)
        self.explodes = options.text is not None

    @property
    def key(self) -> str:
        if self.options.text is not None:
            return words_of(self.options.text)
        return f"cast({self.options.key} as string)"

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {}

    def partial(self, rows: pa.Table) -> pa.Table:
        """Counts by key; then the time of all of them, shared out as it was declared."""
        partials = aggregate(rows, ())
        declared = self.declared_seconds(partials, task_position()[1])
        due = float(declared.sum())
        taken = _sleep(due) if self.options.spend == "sleep" else _burn(due)
        share = taken / due if due else 0.0
        return partials.append_column(SECONDS, pa.array(declared * share))

    def declared_seconds(self, partials: pa.Table, partition: int) -> Float64s:
        """What the records of each row of `partials` cost in a partition."""
        factors = np.array(self.options.class_factors)
        hashes = partials[KEY_HASH].to_numpy().astype(np.int64).view(np.uint64)
        classes = (hashes % np.uint64(factors.size)).astype(np.int64)
        here = self.options.partition_factors.get(partition, 1.0) * self.options.cost.seconds
        seconds: Float64s = partials[RECORDS].to_numpy() * factors[classes] * here
        return seconds

    @property
    def merge(self) -> Mapping[str, str]:
        return {"count": f"sum({RECORDS})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {"count": "count(1)"}


def _sleep(seconds: float) -> float:
    started = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - started


def _burn(seconds: float) -> float:
    """Work for so much processor time; how long that took."""
    started = time.perf_counter()
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return time.perf_counter() - started
