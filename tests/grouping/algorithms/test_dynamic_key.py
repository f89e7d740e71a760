"""Dynamic Key Grouping: the paper's table 1, its spaces in stream time, scaling out and down."""

import numpy as np
import pytest
from numpy.typing import NDArray

from unskew.grouping.algorithms.dynamic_key import machines_max, threshold_percent
from unskew.grouping.base import Grouping
from unskew.grouping.errors import GroupingError
from unskew.grouping.registry import create

SECOND = 1_000_000
HOT = np.uint64(0)


def _country(records: int, skew: float, seed: int = 1) -> NDArray[np.uint64]:
    """204 names as in the paper's synthetic data, of which one takes `skew` percent."""
    generator = np.random.default_rng(seed)
    names = generator.integers(1, 2**64, 204, dtype=np.uint64)
    names[0] = HOT
    ids = generator.integers(1, 204, records)
    ids[generator.random(records) < skew / 100] = 0
    return names[ids]


def _times(records: int, start: float, end: float) -> NDArray[np.int64]:
    return np.linspace(start * SECOND, end * SECOND, records, endpoint=False).astype(np.int64)


def _make(partitions: int = 10, **params: object) -> Grouping:
    return create("dynamic_key", partitions=partitions, seed=3, **params)


def _route(grouping: Grouping, keys: NDArray[np.uint64], start: float, end: float) -> NDArray:
    return grouping.route(keys, _times(keys.size, start, end))


def _warmed(skew: float = 80.0, **params: object) -> Grouping:
    """A grouping after 120 s of country-skew."""
    grouping = _make(**params)
    _route(grouping, _country(60_000, skew), 0, 120)
    return grouping


def _percent(routes: NDArray[np.int32], partitions: int = 10) -> NDArray[np.float64]:
    return 100 * np.bincount(routes, minlength=partitions) / routes.size


def _fan_out(keys: NDArray[np.uint64], routes: NDArray[np.int32], key: np.uint64 = HOT) -> int:
    return len(np.unique(routes[keys == key]))


def _dist_cost(keys: NDArray[np.uint64], routes: NDArray[np.int32]) -> float:
    """Eq. 8: keys summed over the partitions, by distinct keys."""
    pairs = set(zip(keys.tolist(), routes.tolist(), strict=True))
    return len(pairs) / len(np.unique(keys))


@pytest.mark.parametrize(
    ("machines", "threshold", "most"),
    [(5, 24.47, 5), (10, 13.16, 8), (20, 7.24, 14), (50, 3.41, 30), (100, 2.00, 51)],
)
def test_thresholds_are_table_1(machines: int, threshold: float, most: int) -> None:
    assert round(threshold_percent(machines), 2) == threshold
    assert machines_max(machines) == most


def test_machines_of_a_key_never_exceed_the_machines() -> None:
    assert [machines_max(partitions) for partitions in (1, 2, 3, 4)] == [1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("machines", [5, 10, 20, 50, 100, 200])
def test_one_key_alone_gets_table_1s_machines(machines: int) -> None:
    grouping = _make(machines, memory="stream")
    keys = np.zeros(30_000 * max(machines, 50), np.uint64)

    routes = _route(grouping, keys, 0, 300)

    assert _fan_out(keys, routes) == machines_max(machines)


def test_keys_have_two_neighbouring_partitions() -> None:
    grouping = _make()
    keys = _country(20_000, 0)

    routes = _route(grouping, keys, 0, 14)

    for key in np.unique(keys):
        first, second = np.unique(routes[keys == key]).tolist()
        assert (second - first) % 10 in (1, 9)
    assert _percent(routes).std() < 0.05


def test_promotions_follow_both_cycles() -> None:
    grouping = _make()
    keys = _country(1000, 50)
    spaces = []

    for start, end in ((0, 15), (15, 16), (16, 60), (60, 61)):
        _route(grouping, keys, start, end)
        signals = grouping.signals()
        spaces.append([signals[f"{space}_keys"] for space in ("old", "teenage", "baby")])

    # The 40 teenagers make room for 10 more when ten of them grow old.
    assert spaces[0][:2] == [0, 0]
    assert spaces[1][:2] == [0, 40]
    assert spaces[2][:2] == [0, 40]
    assert spaces[3][:2] == [10, 30]
    assert grouping.hot_keys()[0] == HOT


def test_no_key_is_widened_before_it_is_old() -> None:
    grouping = _make(memory="stream")

    before = _route(grouping, _country(30_000, 80), 0, 60)
    assert _percent(before).max() > 40
    after = _route(grouping, _country(40_000, 80), 60, 120)
    assert _percent(after[-10_000:]).max() < 14


def test_no_key_is_widened_before_the_warm_up_ends() -> None:
    params = {"teenage_cycle_seconds": 1.0, "old_cycle_seconds": 2.0}
    keys = _country(20_000, 80)

    cold = _route(_make(**params), keys, 0, 15)
    warm = _route(_make(**params, warm_up_seconds=0.0), keys, 0, 15)

    assert (_fan_out(keys, cold), _fan_out(keys, warm)) == (2, 8)


@pytest.mark.parametrize("memory", ["batch", "stream"])
def test_skewed_key_spreads_until_its_partitions_are_near_the_threshold(memory: str) -> None:
    grouping = _warmed(memory=memory)
    grouping.begin_batch()
    keys = _country(50_000, 80, seed=2)

    routes = _route(grouping, keys, 120, 150)

    assert _fan_out(keys, routes) in (7, 8)
    assert _percent(routes).max() < 13.16 + 0.6


@pytest.mark.parametrize("skew", [0, 30, 60, 80, 100])
def test_balance_and_cost_lie_between_key_and_shuffle(skew: int) -> None:
    keys = _country(60_000, skew, seed=2)
    routes = {name: create(name, partitions=10, seed=3).route(keys) for name in ("key", "shuffle")}

    mine = _route(_warmed(skew), keys, 120, 150)

    spread = {name: _percent(out).std() for name, out in routes.items()}
    assert spread["shuffle"] <= _percent(mine).std() < spread["key"]
    cost = _dist_cost(keys, mine)
    assert 1 <= cost <= (2.2 if skew < 100 else 8)


def test_figures_of_table_3() -> None:
    """68 % skew on ten machines: StdDev 20.3 for key grouping, 4.1 for the paper's."""
    keys = _country(100_000, 68, seed=2)

    assert _percent(create("key", partitions=10, seed=3).route(keys)).std() == pytest.approx(
        20.3, abs=1
    )
    assert _percent(_route(_warmed(68), keys, 120, 170)).std() == pytest.approx(4.1, abs=0.5)


def test_half_skew_is_followed_when_it_comes_and_goes() -> None:
    """country-half-skew-r80: 80 % in one half of the stream. A key gives partitions back when
    its next records come, so a few must.
    """
    grouping = _make(memory="stream")
    widths = []

    for start, skew in ((0, 0), (100, 80), (300, 5)):
        _route(grouping, _country(80_000, skew), start, start + 150)
        widths.append(grouping.signals()["width_max"])

    assert widths[0] == 2
    assert widths[1] in (6, 7, 8)
    assert widths[2] == 2


@pytest.mark.parametrize("memory", ["batch", "stream"])
def test_scaling_down_gives_partitions_back(memory: str) -> None:
    grouping = _warmed(100, memory=memory)
    wide = grouping.signals()["wide_keys"]
    grouping.begin_batch()
    keys = _country(60_000, 10)

    routes = _route(grouping, keys, 120, 180)

    assert (wide, grouping.signals()["wide_keys"]) == (1, 0)
    assert _fan_out(keys[-40_000:], routes[-40_000:]) == 2


def test_balance_is_never_worse_after_a_scale_out() -> None:
    """The authors' code sends all of a key to its new machine until lifetime loads are even."""
    grouping = _make(memory="stream")
    keys, most, step = _country(120_000, 80), [], 2000

    for i in range(0, keys.size, step):
        routes = _route(grouping, keys[i : i + step], i / 1000, (i + step) / 1000)
        most.append(_percent(routes).max())

    assert most[0] > 40
    assert max(most[i + 1] - most[i] for i in range(len(most) - 1)) < 3
    assert most[-1] < 15


def test_balance_of_every_batch_is_near_the_threshold_once_a_key_is_wide() -> None:
    grouping = _warmed()
    most = []

    for batch in range(10):
        grouping.begin_batch()
        routes = _route(grouping, _country(20_000, 80, seed=batch), 120 + batch, 121 + batch)
        most.append(_percent(routes).max())

    assert max(most) < 15


@pytest.mark.parametrize(("sources", "worse"), [(1, 1.1), (5, 1.2), (48, 1.8)])
def test_small_batches_widen_a_hot_key_as_large_ones_do(sources: int, worse: float) -> None:
    """Each has 50 records a partition; the thresholds wait for 100, whatever the batches are."""
    rng = np.random.default_rng(7)
    keys = np.where(rng.random(400_000) < 0.3, 0, rng.integers(1, 5_000, 400_000))
    times = np.linspace(0, 400 * SECOND, keys.size).astype(np.int64)
    fullest = {}
    for records in (5_000, 50_000):
        members = [
            create("dynamic_key", partitions=100, source=number, sources=sources, seed=3)
            for number in range(sources)
        ]
        for batch in np.split(np.arange(keys.size), keys.size // records):
            loads = np.zeros(100)
            for number, member in enumerate(members):
                own = batch[number::sources]
                member.begin_batch()
                routes = member.route(keys[own].astype(np.uint64), times[own])
                loads += np.bincount(routes, minlength=100)
            fullest[records] = loads.max() / loads.mean()

    assert members[0].signals()["width_max"] > 8
    assert fullest[5_000] < worse * fullest[50_000]


def test_checks_once_a_minute_widen_by_one_partition_a_minute() -> None:
    grouping = _make(check_seconds=60.0, memory="stream")
    widths = []

    for start in range(0, 300, 60):
        _route(grouping, _country(30_000, 80), start, start + 60)
        widths.append(grouping.signals()["width_max"])

    assert widths == [2, 3, 4, 5, 6]


def test_decay_lets_a_new_hot_key_grow_old() -> None:
    def hottest(decay: float) -> int:
        grouping = _make(decay=decay, expected_keys=10)
        _route(grouping, np.full(50_000, 7, np.uint64), 0, 70)
        _route(grouping, np.full(10_000, 8, np.uint64), 70, 200)
        return int(grouping.hot_keys()[0])

    assert (hottest(1.0), hottest(0.1)) == (7, 8)


def test_time_is_the_largest_timestamp_so_far() -> None:
    keys = _country(50_000, 80)
    times = _times(keys.size, 0, 200)
    late = times.copy()
    late[1::3] -= 100 * SECOND
    late[7::9] = np.iinfo(np.int64).min
    seen = np.maximum.accumulate(late)

    assert _make().route(keys, late).tolist() == _make().route(keys, seen).tolist()


def test_timestamps_at_both_ends_of_their_type_are_routed() -> None:
    ends = np.array([np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max, 5, -5] * 20, np.int64)
    grouping = _make()

    routes = grouping.route(np.arange(100, dtype=np.uint64), ends)

    assert set(routes.tolist()) <= set(range(10))


def test_records_can_be_the_clock() -> None:
    keys = _country(100_000, 80)
    counted = _make(records_per_second=1000)
    timed = _make()

    assert not counted.wants_timestamps
    assert timed.wants_timestamps
    assert counted.route(keys).tolist() == _route(timed, keys, 0, 100).tolist()


def test_a_cycle_of_many_distinct_keys_stays_within_the_bound() -> None:
    grouping = _make(baby_keys_max=1000)
    before = len(grouping.snapshot().to_bytes())
    keys = np.random.default_rng(1).permutation(np.arange(300_000, dtype=np.uint64))
    keys[::4] = 7

    routes = _route(grouping, keys, 0, 200)

    assert len(grouping.snapshot().to_bytes()) < before + 100
    assert grouping.hot_keys()[0] == 7
    assert _percent(routes[-50_000:]).max() < 14


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_few_partitions(partitions: int) -> None:
    grouping = _make(partitions)
    keys = _country(30_000, 100)

    routes = _route(grouping, keys, 0, 300)

    assert _fan_out(keys, routes) == partitions


def test_only_keys_next_to_a_partition_that_left_move() -> None:
    keys = np.random.default_rng(4).integers(0, 2**64, 2000, dtype=np.uint64)
    twice = np.repeat(keys, 2)

    def candidates(active: list[int]) -> NDArray[np.int32]:
        grouping = _make(20)
        grouping.set_active(active)
        pairs = []
        for start in range(0, twice.size, 2):
            grouping.begin_batch()
            pairs.append(np.sort(grouping.route(twice[start : start + 2], np.zeros(2, np.int64))))
        return np.array(pairs)

    whole, part = candidates(list(range(20))), candidates([i for i in range(20) if i != 11])

    touched = (whole == 11).any(axis=1)
    assert (whole[~touched] == part[~touched]).all()
    assert not (part == 11).any()
    assert touched.mean() == pytest.approx(2 / 20, abs=0.02)


def test_wide_key_keeps_within_fewer_partitions() -> None:
    grouping = _warmed(100)
    grouping.set_active([1, 4, 5])
    grouping.begin_batch()
    keys = _country(30_000, 100)

    routes = _route(grouping, keys, 120, 200)

    assert np.unique(routes).tolist() == [1, 4, 5]


def test_baby_space_smaller_than_expected_keys_is_refused() -> None:
    with pytest.raises(GroupingError, match="baby_keys_max: at least expected_keys, 1000"):
        _make(expected_keys=1000, baby_keys_max=999)


def test_many_sources_level_a_hot_key_as_soon_as_one() -> None:
    records, batches = 96_000, 4
    rng = np.random.default_rng(5)
    keys = np.where(rng.random(records) < 0.3, 0, rng.integers(1, 5_000, records)).astype(np.uint64)
    times = np.arange(records) * (400_000_000 // records)
    fullest = {}
    for sources in (1, 48):
        members = [
            create("dynamic_key", partitions=50, source=number, sources=sources, seed=3)
            for number in range(sources)
        ]
        for share in np.array_split(np.arange(records), batches):
            loads = np.zeros(50)
            for number, member in enumerate(members):
                own = share[number::sources]
                member.begin_batch()
                loads += np.bincount(member.route(keys[own], times[own]), minlength=50)
        fullest[sources] = loads.max() / loads.mean()

    assert fullest[1] < 3.5
    assert fullest[48] < 1.2 * fullest[1]
