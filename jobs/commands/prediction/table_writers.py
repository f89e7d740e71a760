"""Writers of a table that is partitioned by the key: files and the slowest of them, by each way.

Each way's writers are not estimated but made, from the sample's own keys: what a task writes of a
value is a file. REBALANCE is Spark's, as its optimizer does it: rows are hashed over 200 shuffle
partitions, neighbours are joined up to a writer's share, and larger ones are cut between the tasks
that read. Its target size is taken to be a writer's share, as one would set it by hand.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from unskew.grouping.base import Grouping, Int32s, Int64s
from unskew.grouping.parts.key_sizes import add_key_size
from unskew.grouping.registry import create
from unskew.grouping.simulation.batch_cost import Begun
from unskew.grouping.simulation.loads import KeyBatch, hash_as_spark
from unskew.grouping.simulation.simulate import begin_all

NO_SHUFFLE, HASHED, REBALANCE, LEVEL = "none", "hash", "REBALANCE", "level"
EVEN = 1.05
"""Writers count as even if the slowest takes at most this times the mean."""
CLOSE = 1.05
"""Ways whose numbers of files are within this ratio count as equally good."""
SHUFFLE_PARTITIONS = 200
_SMALL, _MERGED = 0.2, 1.2
"""Spark's factors: what is smaller is merged anyway, what is not larger may be merged."""


_Spread = Callable[["Sequence[Reading]", int], Iterator[Int32s]]


@dataclass(frozen=True)
class Writers:
    """What the writers of one way do in a batch, on average."""

    way: str
    files: float
    rows_of_file: float
    most_files: float
    """The most files of one writer."""
    slowest_over_mean: float
    """Rows of the fullest writer over a batch's even share; where the job balances bytes, those and
    what its files cost."""


@dataclass(frozen=True)
class Reading:
    """One batch, and which of the tasks that read has each row."""

    batch: KeyBatch
    task: Int64s
    tasks: int
    sizes: Int64s | None = None
    """The bytes of each row, where they are what is balanced."""

    @classmethod
    def share_evenly(cls, batch: KeyBatch, tasks: int, sizes: Int64s | None = None) -> "Reading":
        """Share what is read evenly, one task behind the other."""
        return cls(batch, np.arange(batch.hashes.size) * tasks // batch.hashes.size, tasks, sizes)


@dataclass(frozen=True)
class LevelOptions:
    """How a job has its table's writers levelled."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """The grouping's own."""
    sizes: Sequence[Int64s] | None = None
    """The bytes of rows, batch by batch, which `balance: bytes` needs."""
    file_cost: int = 0
    """The bytes that a file costs beside them."""


def predict_writers(
    batches: Sequence[KeyBatch],
    partitions: int,
    tasks: int,
    begun: Begun = lambda _: None,
    level: LevelOptions | None = None,
) -> tuple[Writers, ...]:
    """Predict what each way writes of these batches; `begun` is called with each way."""
    level = level or LevelOptions()
    sized: Sequence[Int64s | None] = level.sizes or [None] * len(batches)
    pairs = zip(batches, sized, strict=True)
    readings = [Reading.share_evenly(batch, tasks, size) for batch, size in pairs]
    ways: Mapping[str, _Spread] = {**_WAYS, LEVEL: partial(route_by_level, level=level)}
    written = []
    for way in _ORDER:
        begun(way)
        routes = list(ways[way](readings, partitions))
        written.append(_average(way, readings, routes, partitions, level.file_cost))
    return tuple(written)


def advise(predictions: Sequence[Writers]) -> str:
    """One sentence on what to take: the fewest files among those that are even."""
    by_way = {each.way: each for each in predictions}
    even = [each for each in predictions if each.slowest_over_mean <= EVEN] or [by_way[LEVEL]]
    fewest = min(each.files for each in even)
    chosen = next(each for each in even if each.files <= CLOSE * fewest)
    files = (
        f"{chosen.files:,.0f} files a batch, and the fullest writer has"
        f" {chosen.slowest_over_mean:.2f}x the mean"
    )
    if chosen.way == HASHED:
        return f"You do not need Unskew for this table: repartition by its columns makes {files}."
    if chosen.way == NO_SHUFFLE:
        return f"You do not need Unskew for this table: no shuffle makes {files}."
    if chosen.way == REBALANCE:
        level = by_way[LEVEL]
        return (
            "You may not need Unskew for this table: a hint REBALANCE in foreachBatch, with a"
            f" writer's share as its advisory size, makes {files}; grouping level"
            f" {level.files:,.0f} and {level.slowest_over_mean:.2f}x. With foreachBatch"
            " you must see to it yourself that a repeated batch writes each row once."
        )
    hashed, unshuffled = by_way[HASHED], by_way[NO_SHUFFLE]
    return (
        f"Take grouping level: {files}; by hash it would have {hashed.slowest_over_mean:.2f}x with"
        f" {hashed.files:,.0f} files, and without a shuffle there would be {unshuffled.files:,.0f}."
    )


def _average(
    way: str,
    readings: Sequence[Reading],
    routes: Sequence[Int32s],
    partitions: int,
    file_cost: int,
) -> Writers:
    pairs = zip(readings, routes, strict=True)
    loads = [read.batch.count(chosen, int(chosen.max()) + 1) for read, chosen in pairs]
    rows = [int(each.records.sum()) for each in loads]
    files = fmean(each.pairs for each in loads)
    # Without a shuffle the writers are the tasks that read.
    writers = readings[0].tasks if way == NO_SHUFFLE else partitions
    weights = [
        each.records
        if read.sizes is None
        else np.bincount(chosen, read.sizes) + file_cost * each.keys
        for read, chosen, each in zip(readings, routes, loads, strict=True)
    ]
    uneven = [each.max() * writers / each.sum() for each in weights]
    most = fmean(int(each.keys.max()) for each in loads)
    return Writers(way, files, fmean(rows) / files, most, float(fmean(uneven)))


def _write_where_read(readings: Sequence[Reading], _: int) -> Iterator[Int32s]:
    for reading in readings:
        yield reading.task.astype(np.int32)


def _hash(readings: Sequence[Reading], partitions: int) -> Iterator[Int32s]:
    for reading in readings:
        yield hash_as_spark(reading.batch.hashes, partitions)


def route_by_level(
    readings: Sequence[Reading], partitions: int, level: LevelOptions
) -> Iterator[Int32s]:
    tasks = readings[0].tasks
    routers: list[Grouping] = [
        create(LEVEL, partitions=partitions, source=source, sources=tasks, **level.options)
        for source in range(tasks)
    ]
    for reading in readings:
        begin_all(routers, None)
        chosen = np.empty(reading.task.size, np.int32)
        for source, router in enumerate(routers):
            mine = reading.task == source
            sizes = None if reading.sizes is None else reading.sizes[mine]
            share = reading.batch.hashes[mine], sizes
            (whole,) = add_key_size([share], level.file_cost, tasks)
            chosen[mine] = router.route(*whole)
        yield chosen


def _rebalance(readings: Sequence[Reading], partitions: int) -> Iterator[Int32s]:
    for reading in readings:
        hashed = hash_as_spark(reading.batch.hashes, SHUFFLE_PARTITIONS).astype(np.int64)
        blocks = np.bincount(
            hashed * reading.tasks + reading.task, minlength=SHUFFLE_PARTITIONS * reading.tasks
        ).reshape(SHUFFLE_PARTITIONS, reading.tasks)
        target = -(-reading.task.size // partitions)
        yield number_writers(blocks, target)[hashed, reading.task]


def number_writers(blocks: Int64s, target: int) -> Int32s:
    """The writer of each block: a row for a shuffle partition, a column for a task that reads."""
    writers = np.empty(blocks.shape, np.int32)
    last, room = -1, 0
    for partition, sizes in enumerate(blocks):
        size = int(sizes.sum())
        if size > target:
            pieces = cut_partition(sizes.tolist(), target)
            for piece, start in enumerate(pieces):
                writers[partition, start:] = last + 1 + piece
            last, room = last + len(pieces), 0
            continue
        if size > room or last < 0:
            last, room = last + 1, target
        room -= size
        writers[partition] = last
    return writers


def cut_partition(sizes: Sequence[int], target: int) -> list[int]:
    """Cut a shuffle partition as Spark does, given what each task that reads has of it.

    Pieces are filled up to the target; then neighbours of which one is small, or that are not much
    more than it together, are one.
    """
    pieces = [(0, sizes[0])]
    for start, size in enumerate(sizes[1:], 1):
        begun, filled = pieces[-1]
        if filled + size > target:
            pieces.append((start, size))
        else:
            pieces[-1] = begun, filled + size
    merged = pieces[:1]
    for start, size in pieces[1:]:
        begun, before = merged[-1]
        if min(size, before) < target * _SMALL or size + before < target * _MERGED:
            merged[-1] = begun, before + size
        else:
            merged.append((start, size))
    return [start for start, _ in merged]


_WAYS: Mapping[str, _Spread] = {
    HASHED: _hash,
    REBALANCE: _rebalance,
    NO_SHUFFLE: _write_where_read,
}
_ORDER = (HASHED, REBALANCE, LEVEL, NO_SHUFFLE)
