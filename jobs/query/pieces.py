"""Into how many pieces Kafka's partitions are cut, so that tasks which join them have equal shares.

Each piece costs a consumer and a fetch that reads beyond it, some 10 ms of processor time. So as
few are asked for as make the shares equal, by what Spark makes of the number (`minPartitions` of
`KafkaOffsetRangeCalculator`, `coalesce` of `CoalescedRDD`) and the sizes of the topic's partitions.
"""

import math
from collections.abc import Iterator, Sequence

_EVEN = 1.05
"""A task with up to this many times the mean share counts as even."""
_PIECES_A_TASK = (1, 2, 4, 8, 16, 32)
_PIECES_A_TASK_UNKNOWN = 4


def choose_pieces(sizes: Sequence[int], tasks: int) -> int:
    """The number to ask for: the least whose largest share is even enough, else the evenest.

    `sizes` are the records of each Kafka partition, as far as they are known. Where many more of
    them than tasks are nearly empty, shares stay uneven: Spark joins pieces by their number.
    """
    if sum(sizes) == 0:
        return tasks * _PIECES_A_TASK_UNKNOWN
    shares = {}
    for min_partitions in _list_candidates(len(sizes), tasks):
        shares[min_partitions] = compute_largest_share(sizes, min_partitions, tasks)
        if shares[min_partitions] <= _EVEN:
            return min_partitions
    return min(shares, key=shares.__getitem__, default=tasks * _PIECES_A_TASK[-1])


def _list_candidates(partitions: int, tasks: int) -> Iterator[int]:
    for pieces in _PIECES_A_TASK:
        # Spark rounds for each Kafka partition: asking for half a piece less for each keeps a task
        # from being joined of one piece too many.
        for min_partitions in (pieces * tasks, pieces * tasks - partitions // 2):
            # Kafka partitions that need no cut have preferred executors, by which Spark's
            # `coalesce` makes groups of unequal size.
            if min_partitions > partitions:
                yield min_partitions


def compute_largest_share(sizes: Sequence[int], min_partitions: int, tasks: int) -> float:
    """The records of the largest task, at worst, over the mean of all tasks."""
    pieces = sorted(cut(sizes, min_partitions), reverse=True)
    # Neighbours are joined, but Spark's order of the Kafka partitions is not defined.
    most = math.ceil(len(pieces) / tasks)
    return sum(pieces[:most]) * tasks / sum(sizes)


def cut(sizes: Sequence[int], min_partitions: int) -> list[float]:
    """The sizes of the pieces: Kafka partitions too small for a cut do not count for the others."""
    whole = [_count_pieces(size, sum(sizes), min_partitions) == 1 for size in sizes]
    left = max(min_partitions - sum(whole), 1)
    total = sum(size for size, uncut in zip(sizes, whole, strict=True) if not uncut)
    pieces: list[float] = []
    for size, uncut in zip(sizes, whole, strict=True):
        count = 1 if uncut else _count_pieces(size, total, left)
        pieces += [size / count] * count
    return [piece for piece in pieces if piece]


def _count_pieces(size: int, total: int, min_partitions: int) -> int:
    return max(1, int(size / total * min_partitions + 0.5))
