"""Promises about routes: where records go, and what decides it.

Each check takes a member and raises `AssertionError`; `tests/grouping/family/checks.py` has them
all.
"""

from collections.abc import Iterator

import numpy as np

from tests.grouping.family.members import (
    BATCH_RECORDS,
    PARTITIONS,
    Checks,
    Member,
    Step,
    batches,
    distinct_keys,
    play_all,
    record_steps,
    report,
    times_of,
    zipf_keys,
)
from unskew.grouping.algorithms.key import Key, KeyParams
from unskew.grouping.base import Feedback, Int32s, Int64s, UInt64s

check = Checks()
EXTREMES = np.array([0, 2**64 - 1, 1, 2**63, 0, 2**64 - 1, 2**32, 0], np.uint64)


def inputs() -> dict[str, UInt64s]:
    """Arrays of keys that have something special, by what it is."""
    return {
        "skewed": zipf_keys(5000),
        "all distinct": distinct_keys(0, 5000),
        "one key": np.full(5000, 7, np.uint64),
        "only the key 0": np.zeros(5000, np.uint64),
        "only the key 2^64 - 1": np.full(5000, 2**64 - 1, np.uint64),
        "extreme keys": np.tile(EXTREMES, 500),
        "small numbers": np.arange(5000, dtype=np.uint64) % np.uint64(300),
        "multiples of 2^32": np.arange(5000, dtype=np.uint64) << np.uint64(32),
        "one record": EXTREMES[:1],
        "nothing": EXTREMES[:0],
    }


def assert_routes(routes: Int32s, records: int, allowed: Int32s, what: str) -> None:
    """One partition a record, all of them allowed."""
    assert routes.dtype == np.int32, f"{what}: {routes.dtype}"
    assert routes.shape == (records,), f"{what}: {routes.shape} for {records} records"
    outside = np.setdiff1d(routes, allowed)
    assert outside.size == 0, f"{what}: routes to {outside.tolist()}"


@check
def routes_are_in_range_and_total(member: Member) -> None:
    """Every record gets one of the partitions, whatever the keys."""
    for partitions, source, sources in ((PARTITIONS, 0, 1), (2, 1, 3), (64, 4, 5)):
        everywhere = np.arange(partitions, dtype=np.int32)
        grouping = member.make(partitions, source=source, sources=sources)
        for what, keys in inputs().items():
            grouping.begin_batch()
            for _ in range(2):
                routes = grouping.route(keys, times_of(keys.size))
                assert_routes(routes, keys.size, everywhere, what)


@check
def one_partition_gets_all(member: Member) -> None:
    """With one partition every record goes to 0, also once reports have come."""
    grouping = member.make(1)
    for _ in range(2):
        for what, keys in inputs().items():
            routes = grouping.route(keys, times_of(keys.size))
            assert not routes.any(), f"{what}: a record went elsewhere than to partition 0"
        record_steps(grouping, batches())


@check
def same_seed_same_routes(member: Member) -> None:
    """Two groupings that are called in turn do not see each other, nor any that was before."""
    steps, routes = record_steps(member.make(), batches())
    first, second = member.make(), member.make()
    for number, (step, expected) in enumerate(zip(steps, routes, strict=True)):
        for grouping in (first, second):
            assert np.array_equal(step.play(grouping), expected), f"step {number} differs"


@check
def another_seed_gives_other_routes(member: Member) -> None:
    """Whoever looks at keys looks at them through the seed."""
    steps, _ = record_steps(member.make(), batches())
    other = [Step(None if s.keys is None else ~s.keys, s.times, s.feedback) for s in steps]
    routes = play_all(member.make(), steps)
    if np.array_equal(routes, play_all(member.make(), other)):
        return  # whatever the keys: there is nothing to seed
    seeded = play_all(member.make(seed=2), steps)
    assert not np.array_equal(routes, seeded), "the seed changes nothing"


@check
def replication_is_between_one_and_the_partitions(member: Member) -> None:
    """Over all sources: every key somewhere, and in no more partitions than there are."""
    answers: list[tuple[UInt64s, Int32s]] = []
    for source in range(3):
        grouping = member.make(source=source, sources=3)
        for keys, times in batches():
            grouping.begin_batch()
            answers.append((keys, grouping.route(keys, times)))
    keys = np.concatenate([keys for keys, _ in answers])
    routes = np.concatenate([routes for _, routes in answers]).astype(np.uint64)
    pairs = np.unique(np.stack([keys, routes]), axis=1).shape[1]
    replication = pairs / np.unique(keys).size
    assert 1 <= replication <= PARTITIONS, f"replication {replication}"


@check
def keys_stay_whole_where_that_is_promised(member: Member) -> None:
    """`splits = False`: within a batch, a key is in one partition."""
    grouping = member.make()
    if grouping.splits:
        return
    for keys, times in [*batches(), *batches(z=0.5)]:
        grouping.begin_batch()
        routes = grouping.route(keys, times)
        pairs = np.unique(np.stack([keys, routes.astype(np.uint64)]), axis=1).shape[1]
        assert pairs == np.unique(keys).size, "a key was split"


@check
def sources_agree_on_whole_keys(member: Member) -> None:
    """`splits = False`: a key of a batch is in one partition from all sources, also new ones."""
    if member.make().splits:
        return
    routers = [member.make(source=source, sources=4) for source in range(4)]
    feedback, agreed = None, None
    # Sources that were away, and the first of them, come back to what the others have learnt.
    for (keys, times), present in zip(batches() * 2, [4, 3, 4, 1, 4, 2, 4, 4], strict=True):
        here = routers[-present:]
        for router in here:
            router.begin_batch(feedback, agreed)
        shares = [slice(number, None, present) for number in range(present)]
        answers = [
            router.route(keys[share], times[share])
            for router, share in zip(here, shares, strict=True)
        ]
        whole = np.concatenate([keys[share] for share in shares])
        routes = np.concatenate(answers)
        pairs = np.unique(np.stack([whole, routes.astype(np.uint64)]), axis=1).shape[1]
        assert pairs == np.unique(whole).size, "sources sent a key to several partitions"
        feedback = report(whole, routes, PARTITIONS, by_record=False)
        agreed = here[0].agree([router.state for router in here])


@check
def balance_is_no_worse_than_key_grouping(member: Member) -> None:
    """At z = 2, once it has learnt, with the reports of the batches before."""
    stream = batches(z=2.0, count=8)
    chosen, plain = member.make(), Key(member.make().setting, KeyParams())
    loads = np.zeros((2, PARTITIONS))
    feedback: Feedback | None = None
    for number, (keys, times) in enumerate(stream):
        chosen.begin_batch(feedback)
        routes = chosen.route(keys, times)
        feedback = report(keys, routes, PARTITIONS, by_record=False)
        if number >= len(stream) // 2:
            loads[0] += np.bincount(routes, minlength=PARTITIONS)
            loads[1] += np.bincount(plain.route(keys), minlength=PARTITIONS)
    most, limit = loads.max(axis=1)
    assert most <= 1.01 * limit, f"the largest load is {most}, with key grouping {limit}"


@check
def partitions_that_are_away_get_nothing(member: Member) -> None:
    """Not a record while they are away, and their part again when they are back."""
    grouping = member.make()
    stream = iter(batches() * 3)
    for active in ([0, 1, 2, 3, 4], [1, 3], [4], [0, 4], [0, 1, 2, 3, 4]):
        grouping.set_active(active)
        for _ in range(2):
            keys, times = next(stream)
            routes = grouping.route(keys, times)
            assert_routes(routes, keys.size, np.array(active, np.int32), f"active {active}")
            grouping.begin_batch(report(keys, routes, PARTITIONS, by_record=True))
    keys = np.concatenate([zipf_keys(2000), distinct_keys(10_000, 2000)])
    used = np.unique(grouping.route(keys, times_of(keys.size, 100_000)))
    assert used.tolist() == [0, 1, 2, 3, 4], f"after all came back only {used.tolist()} are used"


def odd_times() -> Iterator[tuple[str, Int64s]]:
    """Times that no orderly stream has."""
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    orderly, numbers = times_of(BATCH_RECORDS), np.arange(BATCH_RECORDS)
    yield "backwards", orderly[::-1].copy()
    yield "shuffled", np.random.default_rng(3).permutation(orderly)
    yield "all the same", np.zeros(BATCH_RECORDS, np.int64)
    yield "before 1970", orderly - 10**15
    yield "with a record far ahead", np.where(numbers == 100, 10**17, orderly)
    yield "with the extremes", np.where(numbers % 3, orderly, np.where(numbers % 2, least, most))
    yield "from the extreme", np.where(numbers, orderly, least)


@check
def unsorted_times_give_defined_routes(member: Member) -> None:
    """Every time is taken: routes in range, the same each time and however they are cut."""
    everywhere = np.arange(PARTITIONS, dtype=np.int32)
    for what, times in odd_times():
        whole, cut = member.make(), member.make()
        for keys, orderly in [(batches()[0][0], times), batches()[1]]:
            routes = whole.route(keys, orderly)
            chunks = [(keys[:1700], orderly[:1700]), (keys[1700:], orderly[1700:])]
            assert_routes(routes, keys.size, everywhere, what)
            assert np.array_equal(routes, np.concatenate(list(cut.route_chunks(chunks)))), what
            for grouping in (whole, cut):
                grouping.begin_batch(report(keys, routes, PARTITIONS, by_record=True))
        assert np.isfinite(list(whole.signals().values())).all(), f"{what}: {whole.signals()}"


def odd_reports(keys: UInt64s) -> Iterator[tuple[str, Feedback]]:
    """Reports that divide by zero where one does not look out."""
    none, some = np.zeros(PARTITIONS, np.int64), np.array([9, 0, 4, 0, 1])
    still, busy = np.zeros(PARTITIONS), np.array([0.5, 0.5, 0.0, 0.0, 1e-12])
    owners, few, zeros = np.array([0, 0, 2, 4], np.int32), keys[:4], np.zeros(4, np.int64)
    ages = np.array([1e9, 1e-9, 0.0, 1.0, 1.0])
    yield "nothing happened", Feedback(none, still)
    yield "no time was measured", Feedback(some, still)
    yield "busy without records", Feedback(none, busy)
    yield "some idle", Feedback(some, busy)
    yield "rows of nothing", Feedback(some, busy, owners, few, zeros, np.zeros(4))
    yield "rows without time", Feedback(some, still, owners, few, zeros + 1, np.zeros(4))
    yield "rows without records", Feedback(none, busy, owners, few, zeros, np.ones(4))
    yield "rows of more than all", Feedback(some, busy, owners, few, zeros + 10**6, np.ones(4))
    yield "ages", Feedback(none + 10**12, ages, owners, few, zeros + 1, 10.0**-owners)


@check
def odd_reports_are_fine(member: Member) -> None:
    """Reports with zeros, or that do not add up, leave routes in range and figures finite."""
    everywhere = np.arange(PARTITIONS, dtype=np.int32)
    mixed = member.make()
    for what, feedback in odd_reports(batches()[0][0]):
        for grouping in (member.make(), mixed):
            for keys, times in batches(count=3, records=1500):
                routes = grouping.route(keys, times)
                assert_routes(routes, keys.size, everywhere, what)
                grouping.begin_batch(feedback)
            figures = grouping.signals()
            assert np.isfinite(list(figures.values())).all(), f"{what}: {figures}"
            for name, array in grouping.state.items():
                assert np.isfinite(array).all(), f"{what}: {name} is not finite"
