"""The three key spaces: promotion as in the paper's Alg. 1 to 3, and the bound of baby space."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew.grouping.hashing import salts
from unskew.grouping.parts import key_spaces
from unskew.grouping.parts.key_spaces import BABY, NEVER, OLD, TEENAGE

SALT = salts(3, 1)[0]


class Spaces:
    """The arrays of the sketch, and its calls on them."""

    def __init__(self, old: int, teenage: int, baby: int) -> None:
        slots = old + teenage + baby
        self.bounds = np.array([0, old, old + teenage, slots], np.int64)
        self.keys = np.zeros(slots, np.uint64)
        self.counts = np.zeros(slots, np.int64)
        self.widths = np.full(old + teenage, 2, np.int32)
        self.checked = np.full(old + teenage, NEVER, np.int64)
        self.sizes = np.zeros(3, np.int64)
        self.table = np.empty(key_spaces.choose_table_size(slots), np.int32)
        self._reindex()

    def touch(self, key: int, times: int = 1) -> int:
        for _ in range(times):
            slot = key_spaces.find(np.uint64(key), self._spaces())
            if slot < 0:
                slot = key_spaces.admit(np.uint64(key), self._spaces())
            self.counts[slot] += 1
        return int(slot)

    def run_teenage_cycle(self, kept: int) -> None:
        key_spaces.run_teenage_cycle(kept, self._spaces())
        self._reindex()

    def run_old_cycle(self) -> None:
        key_spaces.run_old_cycle(self._spaces())
        self._reindex()

    def space(self, number: int) -> dict[int, int]:
        first = self.bounds[number]
        used = slice(first, first + self.sizes[number])
        return dict(zip(self.keys[used].tolist(), self.counts[used].tolist(), strict=True))

    def all(self) -> dict[int, int]:
        return self.space(OLD) | self.space(TEENAGE) | self.space(BABY)

    def _spaces(self) -> key_spaces.Spaces:
        return key_spaces.Spaces(
            keys=self.keys,
            counts=self.counts,
            widths=self.widths,
            checked=self.checked,
            sizes=self.sizes,
            bounds=self.bounds,
            table=self.table,
            salt=SALT,
        )

    def _reindex(self) -> None:
        key_spaces.reindex(self._spaces())


def _alg_3(source: list[int], destination: list[int], capacity: int) -> tuple[list[int], list[int]]:
    """Alg. 3 of the paper to the letter, on counts, after free slots are filled."""
    source, destination = (sorted(counts, reverse=True) for counts in (source, destination))
    before = len(destination)
    destination += [source.pop(0) for _ in range(min(capacity - before, len(source)))]
    destination.sort(reverse=True)
    for _ in range(capacity):
        if not source or destination[-1] > source[0]:
            break
        first, last = source.pop(0), destination.pop()
        destination.insert(0, first)
        source.append(last)
    return source, destination


def test_new_key_is_a_baby_and_is_found_again() -> None:
    spaces = Spaces(1, 4, 5)

    for key in (0, 7, 2**64 - 1, 0, 0):
        spaces.touch(key)

    assert spaces.space(BABY) == {0: 3, 7: 1, 2**64 - 1: 1}
    assert spaces.space(OLD) == spaces.space(TEENAGE) == {}


def test_cycles_promote_the_most_frequent_and_cut_the_babies() -> None:
    spaces = Spaces(1, 2, 10)
    for key, times in enumerate([5, 9, 1, 7, 3], start=1):
        spaces.touch(key, times)

    spaces.run_teenage_cycle(kept=3)
    assert (spaces.space(TEENAGE), spaces.space(BABY)) == ({2: 9, 4: 7}, {1: 5})
    spaces.run_old_cycle()
    assert (spaces.space(OLD), spaces.space(TEENAGE)) == ({2: 9}, {4: 7})
    spaces.run_teenage_cycle(kept=3)
    assert (spaces.space(TEENAGE), spaces.space(BABY)) == ({4: 7, 1: 5}, {})


def test_more_or_equally_frequent_key_takes_an_elders_place() -> None:
    spaces = Spaces(1, 1, 5)
    spaces.touch(1, 5)
    spaces.run_teenage_cycle(kept=5)
    spaces.run_old_cycle()
    spaces.touch(2, 4)
    spaces.run_teenage_cycle(kept=5)

    spaces.run_old_cycle()
    assert (spaces.space(OLD), spaces.space(TEENAGE)) == ({1: 5}, {2: 4})
    spaces.touch(2)
    spaces.run_old_cycle()
    assert (spaces.space(OLD), spaces.space(TEENAGE)) == ({2: 5}, {1: 5})


def test_partitions_move_with_an_elder_and_are_forgotten_in_baby_space() -> None:
    spaces = Spaces(1, 1, 5)
    spaces.touch(1, 5)
    spaces.run_teenage_cycle(kept=5)
    spaces.run_old_cycle()
    spaces.widths[0], spaces.checked[0] = 6, 99
    for key, times in ((2, 7), (3, 6)):
        spaces.touch(key, times)
        spaces.run_teenage_cycle(kept=5)
        spaces.run_old_cycle()
        if key == 2:
            assert (spaces.space(TEENAGE), spaces.widths.tolist()) == ({1: 5}, [2, 6])
            assert spaces.checked.tolist() == [NEVER, 99]

    assert (spaces.space(BABY), spaces.widths.tolist()) == ({1: 5}, [2, 2])
    assert spaces.checked.tolist() == [NEVER, NEVER]


@given(
    st.lists(st.integers(1, 40), max_size=12, unique=True),
    st.lists(st.integers(1, 40), max_size=12),
)
def test_promotion_is_the_papers(teenage: list[int], babies: list[int]) -> None:
    spaces = Spaces(3, 4, 40)
    keys = iter(range(1000))
    for count in teenage:
        spaces.touch(next(keys), count)
    spaces.run_teenage_cycle(kept=40)
    before = list(spaces.space(TEENAGE).values())
    for count in babies:
        spaces.touch(next(keys), count)

    expected = _alg_3(list(spaces.space(BABY).values()), before, 4)
    spaces.run_teenage_cycle(kept=40)
    actual = [sorted(spaces.space(space).values()) for space in (BABY, TEENAGE)]
    assert actual == [sorted(counts) for counts in expected]

    expected = _alg_3(actual[1], [], 3)
    spaces.run_old_cycle()
    actual = [sorted(spaces.space(space).values()) for space in (TEENAGE, OLD)]
    assert actual == [sorted(counts) for counts in expected]


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.4])
def test_full_baby_space_errs_by_at_most_two_bths_of_the_records(skew: float) -> None:
    slots, records = 64, 20_000
    spaces = Spaces(1, 4, slots)
    weights = np.arange(1, 2001) ** -skew
    stream = np.random.default_rng(5).choice(2000, records, p=weights / weights.sum())

    for i, key in enumerate(stream.tolist()):
        spaces.touch(key)
        if i % 5000 == 4999:
            spaces.run_teenage_cycle(kept=slots)

    counts, true = spaces.all(), np.bincount(stream, minlength=2000)
    errors = [true[key] - count for key, count in counts.items()]
    assert len(counts) <= 5 + slots
    assert min(errors) >= 0
    assert max(errors) <= 2 * records / slots


def test_distinct_keys_only_stay_within_the_slots() -> None:
    spaces = Spaces(1, 4, 100)

    for key in range(1, 3001):
        spaces.touch(key)

    assert len(spaces.all()) <= 100
    assert set(spaces.all().values()) == {1}
    assert 3000 in spaces.space(BABY)


def test_hash_table_stays_at_most_half_full() -> None:
    assert [key_spaces.choose_table_size(slots) for slots in (1, 2, 5, 8050)] == [2, 4, 16, 16_384]
