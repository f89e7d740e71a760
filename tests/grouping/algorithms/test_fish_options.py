"""What the paper compares FISH with: other rules, hashes modulo n, and loads by records."""

import math

import numpy as np
import pytest

from tests.grouping.family.members import zipf_keys
from unskew.grouping.algorithms.fish import Fish, FishParams
from unskew.grouping.base import Feedback, Setting
from unskew.grouping.errors import GroupingError
from unskew.grouping.hashing import mix64
from unskew.grouping.parts.choices import solve_choices
from unskew.grouping.parts.fish import modulo, ring
from unskew.grouping.registry import create

EPOCH = 50
ALPHA = 0.5


def fish(partitions: int, **options: object) -> Fish:
    return Fish(Setting(partitions, seed=1), FishParams(**options))


class Twin:
    """One batch in plain Python, with a counter for every key."""

    def __init__(self, grouping: Fish) -> None:
        self.grouping, self.n = grouping, grouping.setting.partitions
        self.rule, self.placement = grouping.params.rule, grouping.params.placement
        self.counts: dict[int, float] = {}
        self.remembered: dict[int, int] = {}
        self.backlog = [0] * self.n
        self.position, self.total, self.least = 0, 0.0, 2

    def hot(self, key: int) -> bool:
        return self.counts[key] > self.total / (4 * self.n) and self.counts[key] >= 2

    def end_epoch(self) -> None:
        hot = sorted((self.counts[key] for key in self.counts if self.hot(key)), reverse=True)
        if self.rule == "d_choices":
            self.least = max(2, solve_choices(np.array(hot) / self.total, self.n, 1e-4))
        elif hot:
            self.least = max(2, math.ceil(self.n * sum(hot) / self.total / len(hot)))
        self.counts = {key: count * ALPHA for key, count in self.counts.items()}
        self.total, self.position = self.total * ALPHA, 0

    def wanted(self, key: int) -> int:
        if not self.hot(key):
            return 2
        if self.rule == "w_choices":
            return self.n
        if self.rule == "d_choices":
            return self.least
        halvings = int(math.log2(max(self.counts.values()) / self.counts[key]))
        wanted = max(self.n >> halvings, self.least, self.remembered.get(key, 0))
        self.remembered[key] = wanted
        return wanted

    def candidates(self, key: int, count: int) -> list[int]:
        if count >= self.n:
            return list(range(self.n))
        out, marks = np.empty(count, np.int32), ring.new_marks(self.n)
        salt = self.grouping._rule.salt
        if self.placement == "modulo":
            active = np.arange(self.n, dtype=np.int32)
            modulo.draw(active, np.uint64(mix64(np.uint64(key) ^ salt)), marks, out)
        else:
            ring.walk(self.grouping._ring, ring.position(np.uint64(key), salt), marks, out)
        return out.tolist()

    def route(self, key: int) -> int:
        if self.position == EPOCH:
            self.end_epoch()
        self.counts[key] = self.counts.get(key, 0) + 1
        self.position, self.total = self.position + 1, self.total + 1
        order = self.candidates(key, self.wanted(key))
        chosen = min(order, key=lambda p: self.backlog[p])
        self.backlog[chosen] += 1
        return chosen


@pytest.mark.parametrize("partitions", [1, 3, 23])
@pytest.mark.parametrize(
    ("rule", "placement"), [("d_choices", "ring"), ("w_choices", "modulo"), ("chk", "modulo")]
)
def test_routes_are_those_of_plain_python(rule: str, placement: str, partitions: int) -> None:
    keys = zipf_keys(3000, z=1.1, distinct=60, seed=partitions)
    grouping = fish(partitions, epoch_records=EPOCH, alpha=ALPHA, rule=rule, placement=placement)
    twin = Twin(grouping)
    expected = [twin.route(key) for key in keys.tolist()]

    assert grouping.route(keys).tolist() == expected


def test_the_rule_of_d_choices_is_solved_with_every_epoch_however_a_batch_is_cut() -> None:
    keys = zipf_keys(20_000, z=1.2)
    whole, cut = (fish(50, rule="d_choices") for _ in range(2))
    expected = whole.route(keys)
    routes = [cut.route(part) for part in np.split(keys, [1, 999, 1000, 1001, 7654])]

    assert np.concatenate(routes).tolist() == expected.tolist()
    assert 2 < whole.signals()["candidates_min"] < 50
    assert cut.snapshot().checksum() == whole.snapshot().checksum()


def test_all_partitions_are_candidates_also_when_more_come() -> None:
    grouping = fish(12, rule="w_choices")
    grouping.set_active(range(4))
    grouping.route(np.full(100, 7, np.uint64))
    grouping.set_active(range(12))

    assert set(grouping.route(np.full(1000, 7, np.uint64)).tolist()) == set(range(12))


def pairs_after_one_came(placement: str) -> int:
    """(Key, partition) pairs of keys that are alike, a partition coming in the middle."""
    grouping, keys = fish(20, placement=placement), zipf_keys(20_000, z=0.0, distinct=2000)
    grouping.set_active(range(19))
    before = grouping.route(keys)
    grouping.set_active(range(20))
    after = grouping.route(keys)
    pairs = np.stack([np.tile(keys, 2), np.concatenate([before, after]).astype(np.uint64)])
    return np.unique(pairs, axis=1).shape[1]


def test_without_the_ring_a_partition_that_comes_nearly_doubles_the_pairs() -> None:
    assert pairs_after_one_came("modulo") > 1.6 * pairs_after_one_came("ring")


def test_by_records_a_partition_that_is_slow_or_done_gets_as_many() -> None:
    grouping = fish(4, assignment="records", memory="stream")
    assert (grouping.wants_feedback, grouping.wants_timestamps) == (False, False)
    keys = zipf_keys(8000)
    routes = [grouping.route(keys[:4000])]
    grouping.begin_batch(Feedback(np.full(4, 1000), np.array([1.0, 1.0, 9.0, 9.0])))
    routes.append(grouping.route(keys[4000:]))

    loads = np.bincount(np.concatenate(routes), minlength=4)
    assert loads.max() - loads.min() <= 1
    assert grouping.state["backlog"].tolist() == loads.tolist()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rule": "w_choices", "candidates_min": 3}, "candidates_min: only with rule chk"),
        ({"assignment": "records", "interval_records": 9}, "interval_records: only with assign"),
        ({"placement": "hash"}, 'one of ring, modulo (got "hash")'),
    ],
)
def test_options_that_do_not_go_together_are_named(options: dict[str, object], says: str) -> None:
    with pytest.raises(GroupingError) as raised:
        create("fish", partitions=4, **options)

    assert says in str(raised.value)
