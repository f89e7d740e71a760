"""Candidates by hashes modulo the number of partitions, against plain Python."""

import numpy as np
import pytest

from unskew.grouping.hashing import mix64_each
from unskew.grouping.parts.fish.modulo import draw, draw_two

GOLDEN = 0x9E3779B97F4A7C15


def plain(active: list[int], value: int, count: int) -> list[int]:
    """The first `count` different partitions that the hashes of `value` give."""
    drawn: list[int] = []
    while len(drawn) < count:
        if active[value % len(active)] not in drawn:
            drawn.append(active[value % len(active)])
        value = int(mix64_each(np.array([(value + GOLDEN) % 2**64], np.uint64))[0])
    return drawn


@pytest.mark.parametrize("active", [[0, 1], [5, 2, 9], list(range(3, 40))])
def test_candidates_are_those_of_plain_python_and_short_lists_begin_long_ones(
    active: list[int],
) -> None:
    partitions, marks = np.array(active, np.int32), np.zeros(41, np.int64)
    for value in [0, 1, 2**64 - 1, *range(10**18, 10**18 + 20)]:
        out = np.empty(len(active), np.int32)
        draw(partitions, np.uint64(value), marks, out)

        assert out.tolist() == plain(active, value, len(active))
        assert list(draw_two(partitions, np.uint64(value))) == out[:2].tolist()


def test_nearly_every_key_moves_when_a_partition_comes() -> None:
    values = mix64_each(np.arange(2000, dtype=np.uint64))
    few, more = np.arange(9, dtype=np.int32), np.arange(10, dtype=np.int32)
    moved = np.mean([draw_two(few, v)[0] != draw_two(more, v)[0] for v in values])

    assert moved == pytest.approx(0.9, abs=0.03)
