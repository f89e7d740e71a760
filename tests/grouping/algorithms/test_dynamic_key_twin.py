"""Dynamic Key Grouping against a twin in plain Python, record by record."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.algorithms.dynamic_key import DynamicKeyParams, machines_max, threshold_percent
from unskew.grouping.hashing import pick_active, salts
from unskew.grouping.registry import create

SEED = 11
SECOND = 1_000_000


class Item:
    """The paper's Key Item."""

    def __init__(self, key: int) -> None:
        self.key, self.count, self.width, self.checked = key, 0, 2, -(2**61)


class Twin:
    """The algorithm over lists and dicts, written from its description."""

    def __init__(self, partitions: int, active: list[int], params: DynamicKeyParams) -> None:
        self.params = params
        self.active = active
        self.mask = np.zeros(partitions, np.uint8)
        self.mask[active] = 1
        self.threshold = threshold_percent(len(active))
        self.old: list[Item] = []
        self.teenage: list[Item] = []
        self.baby: list[Item] = []
        self.capacity = (params.expected_keys // 10, params.expected_keys * 4 // 10)
        self.begin: int | None = None
        self.now = -(2**61)
        self.since = 0
        self.begin_batch()

    def begin_batch(self) -> None:
        self.loads = dict.fromkeys(self.active, 0)

    def route(self, key: int, time: int) -> int:
        self.now = max(self.now, time)
        self._cycles()
        item = self._item(key)
        item.count += 1
        chosen = self._choose(item)
        self.loads[chosen] += 1
        self.since += 1
        return chosen

    def _item(self, key: int) -> Item:
        for item in [*self.old, *self.teenage, *self.baby]:
            if item.key == key:
                return item
        self.baby.append(Item(key))
        return self.baby[-1]

    def _cycles(self) -> None:
        teenage = int(self.params.teenage_cycle_seconds * SECOND)
        old = int(self.params.old_cycle_seconds * SECOND)
        if self.begin is None:
            self.begin = self.now
            self.teenage_due, self.old_due = self.now + teenage, self.now + old
        due = self.now >= self.teenage_due, self.now >= self.old_due
        if due[0]:
            self._sort(self.baby)
            del self.baby[(self.params.expected_keys + 1) // 2 :]
            self._promote(self.baby, self.teenage, self.capacity[1])
            for item in self.baby:
                item.width, item.checked = 2, -(2**61)
            while self.teenage_due <= self.now:
                self.teenage_due += teenage
        if due[1]:
            self._promote(self.teenage, self.old, self.capacity[0])
            while self.old_due <= self.now:
                self.old_due += old
        if any(due) and self.params.memory == "stream":
            self.begin_batch()
            self.since = 0

    @staticmethod
    def _sort(space: list[Item]) -> None:
        space.sort(key=lambda item: -item.count)

    def _promote(self, source: list[Item], target: list[Item], capacity: int) -> None:
        self._sort(source)
        self._sort(target)
        before = len(target)
        while source and len(target) < capacity:
            target.append(source.pop(0))
        for i in range(min(before, len(source))):
            last = before - 1 - i
            if target[last].count > source[i].count:
                break
            target[last], source[i] = source[i], target[last]

    def _choose(self, item: Item) -> int:
        salt = salts(SEED, 1)[0]
        home = pick_active(np.uint64(item.key), salt, self.mask, np.array(self.active, np.int32))
        start = self.active.index(int(home))
        ring = [self.active[(start + i) % len(self.active)] for i in range(len(self.active))]
        width = min(item.width, machines_max(len(self.active)))
        best = self._least(ring[:width])
        waited = self.now - item.checked >= self.params.check_seconds * SECOND
        elder = item in self.old or item in self.teenage
        sample = self.params.sample_records or 0
        if not elder or not waited or min(self.since, sum(self.loads.values())) < sample:
            return best
        item.checked = self.now
        least = self.threshold / 100 * sum(self.loads.values())
        assert self.begin is not None
        warm = self.now - self.begin > self.params.warm_up_seconds * SECOND
        if self.loads[best] >= least:
            if not (warm and item in self.old and width < machines_max(len(self.active))):
                return best
            if self.loads[ring[width]] >= self.loads[best]:
                return best
            best, item.width = ring[width], width + 1
        elif width > 2 and sum(self.loads[partition] < least for partition in ring[:width]) > 1:
            best, item.width = self._least(ring[: width - 1]), width - 1
        else:
            return best
        self.since = 0
        if self.params.memory == "stream":
            self.begin_batch()
        return best

    def _least(self, partitions: Iterable[int]) -> int:
        return min(partitions, key=self.loads.__getitem__)


@settings(max_examples=60, deadline=None)
@given(
    memory=st.sampled_from(["batch", "stream"]),
    active=st.sets(st.integers(0, 11), min_size=1).map(sorted),
    sample_records=st.sampled_from([1, 7, 50]),
    check_seconds=st.sampled_from([0.0, 2.0]),
    warm_up_seconds=st.sampled_from([4.0, 15.0]),
    expected_keys=st.sampled_from([10, 11, 20]),
    skew=st.sampled_from([0.3, 0.6, 0.95]),
    stream=st.integers(0, 2**32),
)
def test_routes_and_spaces_are_the_twins(
    memory: str,
    active: list[int],
    sample_records: int,
    check_seconds: float,
    warm_up_seconds: float,
    expected_keys: int,
    skew: float,
    stream: int,
) -> None:
    options = {
        "memory": memory,
        "sample_records": sample_records,
        "check_seconds": check_seconds,
        "expected_keys": expected_keys,
        "teenage_cycle_seconds": 3.0,
        "old_cycle_seconds": 7.0,
        "warm_up_seconds": warm_up_seconds,
    }
    grouping = create("dynamic_key", partitions=12, seed=SEED, **options)
    grouping.set_active(active)
    twin = Twin(12, active, DynamicKeyParams(**options))
    generator = np.random.default_rng(stream)
    for batch in range(4):
        keys = generator.integers(0, 40, 250).astype(np.uint64)
        keys[generator.random(250) < skew] = batch // 2
        times = (batch * 10 + generator.random(250) * 12) * SECOND
        grouping.begin_batch()
        if memory == "batch":
            twin.begin_batch()

        routes = grouping.route(keys, times.astype(np.int64))

        expected = zip(keys.tolist(), times.astype(np.int64).tolist(), strict=True)
        assert routes.tolist() == [twin.route(key, time) for key, time in expected]
    old = sorted(twin.old, key=lambda item: -item.count)
    assert grouping.hot_keys().tolist() == [item.key for item in old]
    signals = grouping.signals()
    sizes = [signals[f"{space}_keys"] for space in ("old", "teenage", "baby")]
    assert sizes == [len(twin.old), len(twin.teenage), len(twin.baby)]
    assert signals["wide_keys"] == sum(item.width > 2 for item in twin.old + twin.teenage)


@pytest.mark.parametrize("memory", ["batch", "stream"])
@pytest.mark.parametrize("cut", [1, 1234, 7999])
def test_restored_in_mid_stream_it_routes_on_as_before(memory: str, cut: int) -> None:
    generator = np.random.default_rng(cut)
    keys = generator.integers(0, 300, 8000).astype(np.uint64)
    keys[generator.random(8000) < 0.7] = 5
    times = np.sort(generator.integers(0, 200 * SECOND, 8000))
    options = {"memory": memory, "baby_keys_max": 128, "sample_records": 20}
    whole, first, second = (
        create("dynamic_key", partitions=10, seed=SEED, **options) for _ in range(3)
    )

    first.route(keys[:cut], times[:cut])
    second.restore(first.snapshot())
    rest = second.route(keys[cut:], times[cut:])

    assert rest.tolist() == whole.route(keys, times)[cut:].tolist()
    assert second.snapshot().checksum() == whole.snapshot().checksum()
