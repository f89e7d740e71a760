"""The partitions' reports that sources get back between two calls of `begin_batch`.

`RoutedReports` tells of the records that were routed since the last report, also of those that
still wait in a queue: a row for each key and partition, as a micro-batch's reports have.
`CompletedReports` tells of the records that are done by then: a row for each, in the order in which
they were completed, as the papers' instances see them.
"""

from typing import Protocol

import numpy as np

from unskew.grouping.base import Feedback, Float64s, Int32s, Int64s
from unskew.grouping.parts.pairs import PairCounter


class PartitionReports(Protocol):
    """Reports that are collected record by record and taken at an interval."""

    def add(self, numbers: Int32s, routes: Int32s, seconds: Float64s, done: Float64s) -> None:
        """Take note of records: their keys' numbers, partitions, work and time of completion."""
        ...

    def take(self, now: float) -> Feedback:
        """Take what is to be reported at this time; it is not reported again."""
        ...


class RoutedReports:
    """Reports of all records since the last report."""

    def __init__(self, counter: PairCounter, partitions: int) -> None:
        self._counter = counter
        self._partitions = partitions
        self._pairs: list[Int64s] = []
        self._seconds: list[Float64s] = []

    def add(self, numbers: Int32s, routes: Int32s, seconds: Float64s, done: Float64s) -> None:
        """Take note of records."""
        self._pairs.append(numbers.astype(np.int64) * self._partitions + routes)
        self._seconds.append(seconds)

    def take(self, now: float) -> Feedback:
        """Rows by key and partition, of all that was added."""
        pairs, rows, records = np.unique(
            np.concatenate(self._pairs), return_inverse=True, return_counts=True
        )
        seconds = np.bincount(rows, np.concatenate(self._seconds)).astype(np.float64)
        self._pairs, self._seconds = [], []
        numbers, partitions = np.divmod(pairs, self._partitions)
        size = self._partitions
        return Feedback(
            records=np.bincount(partitions, records, minlength=size).astype(np.int64),
            busy_seconds=np.bincount(partitions, seconds, minlength=size).astype(np.float64),
            key_partitions=partitions.astype(np.int32),
            key_hashes=self._counter.hashes(numbers),
            key_records=records.astype(np.int64),
            key_seconds=seconds,
        )


class CompletedReports:
    """Reports of the records that are done."""

    def __init__(self, counter: PairCounter, partitions: int) -> None:
        self._counter = counter
        self._partitions = partitions
        self._waiting: tuple[Int64s, Int32s, Float64s, Float64s] = (
            np.empty(0, np.int64),
            np.empty(0, np.int32),
            np.empty(0),
            np.empty(0),
        )

    def add(self, numbers: Int32s, routes: Int32s, seconds: Float64s, done: Float64s) -> None:
        """Take note of records."""
        numbers_before, routes_before, seconds_before, done_before = self._waiting
        self._waiting = (
            np.concatenate([numbers_before, numbers.astype(np.int64)]),
            np.concatenate([routes_before, routes]),
            np.concatenate([seconds_before, seconds]),
            np.concatenate([done_before, done]),
        )

    def take(self, now: float) -> Feedback:
        """A row for each record that is done, in the order of completion."""
        numbers, routes, seconds, done = self._waiting
        ready = np.flatnonzero(done <= now)
        ready = ready[np.argsort(done[ready], kind="stable")]
        left = done > now
        self._waiting = (numbers[left], routes[left], seconds[left], done[left])
        partitions, work, size = routes[ready], seconds[ready], self._partitions
        return Feedback(
            records=np.bincount(partitions, minlength=size).astype(np.int64),
            busy_seconds=np.bincount(partitions, work, size).astype(np.float64),
            key_partitions=partitions,
            key_hashes=self._counter.hashes(numbers[ready]),
            key_records=np.ones(ready.size, np.int64),
            key_seconds=work,
        )
