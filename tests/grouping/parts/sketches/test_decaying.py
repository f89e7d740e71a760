"""Algorithm 1 of FISH against a twin in plain Python."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sketches import estimate, observe_decaying
from unskew.grouping.parts.sketches import decaying
from unskew.grouping.parts.sketches.decaying import RECORDS, TOP, TOTAL
from unskew.grouping.parts.sketches.space_saving import find


class Twin:
    """Lines 1-26; which of several least keys goes is the sketch's choice, checked to be least."""

    def __init__(self, capacity, epoch_records, alpha):
        self.capacity, self.epoch_records, self.alpha = capacity, epoch_records, alpha
        self.counts, self.counter, self.total = {}, 0, 0.0

    def observe(self, key, still_there):
        if self.counter == self.epoch_records:
            self.counts = {k: c * self.alpha for k, c in self.counts.items()}
            self.total *= self.alpha
            self.counter = 0
        if key in self.counts:
            self.counts[key] += 1
        elif len(self.counts) < self.capacity:
            self.counts[key] = 1.0
        else:
            (gone,) = [k for k in self.counts if not still_there(k)]
            least = min(self.counts.values())
            assert self.counts.pop(gone) == least
            self.counts[key] = least + 1
        self.counter += 1
        self.total += 1


@settings(max_examples=200, deadline=None)
@given(
    keys=st.lists(st.integers(0, 11), max_size=120),
    capacity=st.integers(1, 8),
    epoch_records=st.integers(1, 9),
    alpha=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
)
def test_counts_are_those_of_algorithm_1(keys, capacity, epoch_records, alpha):
    state = decaying.arrays(capacity)
    counters, epoch = decaying.view(state), state["epoch"]
    twin = Twin(capacity, epoch_records, alpha)

    def there(key):
        return find(counters, np.uint64(key)) >= 0

    for key in keys:
        slot = observe_decaying(counters, epoch, np.uint64(key), epoch_records, alpha)
        twin.observe(key, there)
        assert counters.counts[slot] == twin.counts[key]
    used = int(counters.used[0])
    counts = dict(zip(counters.keys[:used].tolist(), counters.counts[:used].tolist(), strict=True))
    assert counts == twin.counts
    assert epoch[RECORDS] == twin.counter
    assert epoch[TOTAL] == twin.total
    assert epoch[TOP] == max(twin.counts.values(), default=0.0)


def test_the_total_tends_to_1250_at_an_epochs_end():
    state = decaying.arrays(10)
    counters, epoch = decaying.view(state), state["epoch"]
    for _ in range(10_000):
        observe_decaying(counters, epoch, np.uint64(1), 1000, 0.2)
    assert epoch.round(2).tolist() == [1000, 1250, 1250]


def test_counts_of_a_key_that_is_gone_end_at_zero_and_not_at_denormals():
    state = decaying.arrays(4)
    counters, epoch = decaying.view(state), state["epoch"]
    observe_decaying(counters, epoch, np.uint64(7), 1, 0.2)
    for _ in range(1000):
        observe_decaying(counters, epoch, np.uint64(8), 1, 0.2)
    assert estimate(counters, 7) == 0.0
    assert estimate(counters, 8) == 1.25


def test_size_does_not_grow_with_the_keys():
    state = decaying.arrays(16)
    counters, epoch = decaying.view(state), state["epoch"]
    size = sum(array.nbytes for array in state.values())
    for key in range(5000):
        observe_decaying(counters, epoch, np.uint64(key), 100, 0.2)
    assert sum(array.nbytes for array in state.values()) == size <= 68 * 16 + 64
    assert counters.used[0] == 16
