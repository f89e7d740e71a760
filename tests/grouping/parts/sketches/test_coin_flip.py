"""The coin-flip synopsis against a dictionary and a list, and against independent trials."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.sketches.coin_flip import (
    DRAW_STEP,
    DROPPED,
    GAP,
    SIZE,
    TOUCHES,
    Synopsis,
    arrays,
    count_ones,
    decline_all,
    draw_gap,
    gap_powers,
    touch,
    trailing_ones,
    view,
)

KEYS = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2**63, 2**64 - 1])


class Twin:
    """The same synopsis in plain Python: vectors are integers, a key's slot is found by search."""

    def __init__(self, capacity: int, p: float, seed: int, zeta: int) -> None:
        self.keys: list[int] = []
        self.bits: list[int] = []
        self.capacity, self.p, self.draws, self.zeta = capacity, p, seed, zeta
        self.dropped = 0
        self.gap = self.draw()

    def draw(self) -> int:
        self.draws = (self.draws + int(DRAW_STEP)) % 2**64
        uniform = (int(mix64(np.uint64(self.draws))) >> 11) / 2**53
        fails = 0
        while (1 - self.p) ** (fails + 1) > uniform:
            fails += 1
        return fails

    def touch(self, key: int, bit: int) -> None:
        if key not in self.keys:
            if len(self.keys) == self.capacity:
                self.dropped += 1
                return
            self.keys.append(key)
            self.bits.append(0)
        self.bits[self.keys.index(key)] |= 1 << bit

    def decline(self) -> None:
        for slot in reversed(range(len(self.keys))):
            if self.gap:
                self.gap -= 1
                continue
            self.gap = self.draw()
            self.bits[slot] >>= 1
            if not self.bits[slot]:
                self.keys[slot], self.bits[slot] = self.keys[-1], self.bits[-1]
                del self.keys[-1], self.bits[-1]

    def hot(self) -> set[int]:
        return {k for k, b in zip(self.keys, self.bits, strict=True) if b.bit_count() >= self.zeta}


def held(synopsis: Synopsis) -> tuple[list[int], list[int]]:
    size = int(synopsis.counts[SIZE])
    return synopsis.keys[:size].tolist(), synopsis.bits[:size].tolist()


def hot(synopsis: Synopsis) -> set[int]:
    size = int(synopsis.counts[SIZE])
    return set(synopsis.keys[:size][synopsis.hot[:size] == 1].tolist())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(KEYS, st.sampled_from([0, 0, 0, 1, 1, 2, 31])), max_size=300),
    st.sampled_from([0.5, 0.1, 0.02]),
    st.integers(1, 12),
    st.integers(0, 2**64 - 1),
)
def test_same_as_the_twin_step_by_step(
    steps: list[tuple[int, int]], p: float, capacity: int, seed: int
) -> None:
    synopsis = view(arrays(capacity, p, np.uint64(seed)))
    twin = Twin(capacity, p, seed, zeta=2)
    powers, cooled = gap_powers(p), np.zeros(capacity, np.uint64)

    for key, bit in steps:
        before = hot(synopsis)
        turned = {key} if touch(synopsis, np.uint64(key), bit, 2) else set()
        left = set(cooled[: decline_all(synopsis, powers, 2, cooled)].tolist())
        twin.touch(key, bit)
        twin.decline()

        assert held(synopsis) == (twin.keys, twin.bits)
        assert hot(synopsis) == twin.hot() == (before | turned) - left
    assert synopsis.counts[TOUCHES] == len(steps)
    assert synopsis.counts[DROPPED] == twin.dropped
    assert synopsis.counts[GAP] == twin.gap


@kernel
def shifts_after(synopsis: Synopsis, declines: int, powers: np.ndarray, cooled: np.ndarray) -> None:
    for _ in range(declines):
        decline_all(synopsis, powers, 2, cooled)


@pytest.mark.parametrize("p", [0.3, 0.01])
def test_decline_is_an_independent_trial_for_each_vector(p: float) -> None:
    """Shifts of one vector in T declines are binomial(T, p), and those of two are independent."""
    vectors, declines, top = 40, round(4 / p), 40
    powers, cooled = gap_powers(p), np.zeros(vectors, np.uint64)
    shifts = np.empty((400, vectors))
    for repeat in range(400):
        synopsis = view(arrays(vectors, p, mix64(np.uint64(repeat + 1))))
        for key in range(vectors):
            touch(synopsis, np.uint64(key), top, 2)
        shifts_after(synopsis, declines, powers, cooled)
        shifts[repeat] = top - np.log2(synopsis.bits)

    variance = declines * p * (1 - p)
    error = np.sqrt(variance / shifts.size)
    assert abs(shifts.mean() - declines * p) < 4 * error
    assert shifts.var() == pytest.approx(variance, rel=0.06)
    # Of the sum over the vectors too: so they do not move together, nor against each other.
    assert shifts.sum(axis=1).var() == pytest.approx(vectors * variance, rel=0.3)
    assert abs(shifts.mean(axis=0) - declines * p).max() < 5 * np.sqrt(variance / 400)


@pytest.mark.parametrize("p", [0.5, 0.1, 0.001])
def test_gap_is_geometric(p: float) -> None:
    generator, powers = np.array([7], np.uint64), gap_powers(p)

    gaps = np.array([draw_gap(generator, powers) for _ in range(20_000)])

    spread = np.sqrt(1 - p) / p
    assert abs(gaps.mean() - (1 - p) / p) < 4 * spread / np.sqrt(gaps.size)
    assert gaps.std() == pytest.approx(spread, rel=0.05)
    assert (gaps == 0).mean() == pytest.approx(p, abs=4 * np.sqrt(p / gaps.size))


def test_ones_are_counted() -> None:
    assert [trailing_ones(np.uint64(v)) for v in (0, 1, 2, 3, 0b10111, 2**64 - 1)] == [
        *(0, 1, 0, 2, 3, 64)
    ]
    assert [count_ones(np.uint64(v)) for v in (0, 1, 2**63, 0b10111, 2**64 - 1)] == [0, 1, 1, 4, 64]


def test_empty_vector_leaves_after_as_many_shifts_as_its_top_bit_plus_one() -> None:
    synopsis = view(arrays(4, 0.5, np.uint64(3)))
    cooled = np.zeros(4, np.uint64)
    always = np.zeros(32)  # powers of 1 - p for p = 1: no gap
    synopsis.counts[GAP] = 0
    touch(synopsis, np.uint64(5), 2, 2)

    sizes = []
    for _ in range(3):
        decline_all(synopsis, always, 2, cooled)
        sizes.append(int(synopsis.counts[SIZE]))

    assert sizes == [1, 1, 0]


def test_key_turns_hot_with_zeta_different_bits_not_with_one_bit_often() -> None:
    synopsis = view(arrays(4, 0.5, np.uint64(3)))

    answers = [touch(synopsis, np.uint64(5), bit, 3) for bit in (0, 0, 0, 4, 4, 1, 2)]

    assert answers == [False, False, False, False, False, True, False]


def test_full_synopsis_refuses_and_counts() -> None:
    synopsis = view(arrays(2, 0.5, np.uint64(3)))

    for key in (0, 2**64 - 1, 7, 0, 8):
        touch(synopsis, np.uint64(key), 0, 2)

    assert held(synopsis)[0] == [0, 2**64 - 1]
    assert synopsis.counts[DROPPED] == 2
