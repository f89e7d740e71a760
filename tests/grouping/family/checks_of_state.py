"""Promises about state: a value that is saved, restored and bounded, and what it shows of itself.

Each check takes a member and raises `AssertionError`; `tests/grouping/family/checks.py` has them
all.
"""

import dataclasses
import itertools
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.grouping.family.members import (
    BATCH_RECORDS,
    PARTITIONS,
    Checks,
    Member,
    batches,
    distinct_keys,
    members_at_bounds,
    members_of,
    outcome,
    play_all,
    record_steps,
    report,
    times_of,
)
from unskew.grouping.base import Grouping
from unskew.grouping.contents import COUNT_MAX
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot

check = Checks()


@check
def same_seed_same_state(member: Member) -> None:
    """The same calls leave the same state, the same hot keys and the same figures."""
    steps, _ = record_steps(member.make(), batches())
    first, second = member.make(), member.make()
    for step in steps:
        step.play(first)
    for step in steps:
        step.play(second)
    assert outcome(first) == outcome(second), "the states differ"


@check
def a_restored_grouping_continues_identically(member: Member) -> None:
    """Through bytes, between batches or in the middle of one, into a new grouping or a used one."""
    steps, routes = record_steps(member.make(), batches())
    used = member.make()
    play_all(used, record_steps(member.make(), batches(seed=9))[0][:6])
    for cut in (0, 2, 4, 9, 11, 13, len(steps)):
        running = member.make()
        play_all(running, steps[:cut])
        seen, data = outcome(running), running.snapshot().to_bytes()
        for what, grouping in (("new", member.make()), ("used", used), ("same", running)):
            grouping.restore(Snapshot.from_bytes(data))
            assert outcome(grouping) == seen, f"{what} grouping, restored after {cut} steps"
            for step, expected in zip(steps[cut:], routes[cut:], strict=True):
                same = np.array_equal(step.play(grouping), expected)
                assert same, f"{what} grouping, restored after {cut} steps, goes on otherwise"


@check
def a_short_life_is_sound(member: Member) -> None:
    """In range, and the same when it is cut and restored: short, for the dearest of options."""
    steps, routes = record_steps(member.make(), batches(count=2, records=600))
    half, other = member.make(), member.make()
    for step, expected in zip(steps[:6], routes[:6], strict=True):
        if step.keys is None or step.times is None:
            step.play(half)
            continue
        chunks = [(step.keys[a:b], step.times[a:b]) for a, b in ((0, 1), (1, 1), (1, None))]
        answer = np.concatenate(list(half.route_chunks(chunks)))
        assert np.array_equal(answer, expected), "cut, it routes otherwise"
        assert np.isin(answer, half.active).all(), f"out of range: {np.unique(answer)}"
    other.restore(half.snapshot())
    half.set_active([1, 4])
    other.set_active([1, 4])
    for step in steps[6:]:
        answer = step.play(other)
        assert np.array_equal(answer, step.play(half)), "restored, it routes otherwise"
        assert np.isin(answer, [1, 4]).all(), f"routes to partitions away: {np.unique(answer)}"
    assert half.signals() == other.signals(), "restored, it has other figures"
    assert np.isfinite(list(half.signals().values())).all(), str(half.signals())


@check
def a_snapshot_is_a_value(member: Member) -> None:
    """It shares no memory with the grouping that made it, nor with one restored from it."""
    steps, _ = record_steps(member.make(), batches(count=2))
    grouping, other = member.make(), member.make()
    play_all(grouping, steps[:4])
    snapshot = grouping.snapshot()
    before = snapshot.checksum()
    assert before == grouping.snapshot().checksum(), "taking a snapshot changes the state"
    other.restore(snapshot)
    for user in (grouping, other):
        play_all(user, steps[4:])
        user.set_active([0])
        assert snapshot.checksum() == before, "routing changes a snapshot"
    grouping.restore(snapshot)
    for array in snapshot.arrays.values():
        array.view(np.uint8)[:] = 255
    assert grouping.snapshot().checksum() == before, "a snapshot changes the grouping"


@check
def a_snapshot_knows_who_is_away(member: Member) -> None:
    """Restored where others are away, a grouping goes on as the one that the snapshot is of."""
    stream = batches()
    donor, fresh, other = member.make(), member.make(), member.make()
    donor.route(*stream[0])
    everyone = donor.snapshot()
    donor.set_active([0, 2])
    donor.route(*stream[1])
    other.set_active([1, 2, 4])
    other.route(*stream[2])
    snapshot = donor.snapshot()
    for what, grouping in (("all were active", fresh), ("others were active", other)):
        grouping.restore(snapshot)
        assert grouping.active.tolist() == [0, 2], f"{what}: {grouping.active.tolist()}"
    for keys, times in stream[2:]:
        routes = donor.route(keys, times)
        assert np.array_equal(fresh.route(keys, times), routes), "all were active"
        assert np.array_equal(other.route(keys, times), routes), "others were active"
    again = member.make()
    again.restore(everyone)
    donor.restore(everyone)
    for keys, times in stream[2:]:
        same = np.array_equal(again.route(keys, times), donor.route(keys, times))
        assert same, "restored to when all were active"


@check
def a_snapshot_of_other_options_is_refused(member: Member) -> None:
    """It says which options it was made with, and only a grouping with the same takes it."""
    own, grouping = _options_of(member), member.make()
    snapshot = grouping.snapshot()
    assert snapshot.options == own, f"it does not say its options: {snapshot.options}"
    for other in [*members_of(member.kind), *members_at_bounds(member.kind)]:
        options = _options_of(other)
        changed = {f"snapshot: options: {name}" for name in own if options[name] != own[name]}
        refusal = _refusal(grouping, dataclasses.replace(snapshot, options=options))
        assert bool(refusal) == bool(changed), f"{other}: {refusal or 'is taken'}"
        assert not changed or refusal.rpartition(": expected ")[0] in changed, refusal


@check
def a_snapshot_of_wrong_numbers_is_refused(member: Member) -> None:
    """Numbers that no count, float, flag or partition can be are an error with the array's name."""
    donor, grouping = member.make(), member.make()
    donor.route(*batches()[0])
    snapshot = donor.snapshot()
    for name, array in snapshot.arrays.items():
        for value in _impossible(name, array, grouping):
            wrong = array.copy()
            wrong.flat[-1] = value
            changed = dataclasses.replace(snapshot, arrays={**snapshot.arrays, name: wrong})
            refusal = _refusal(grouping, changed)
            assert refusal.startswith(f"snapshot: {name}: "), (
                f"{name} {value}: {refusal or 'taken'}"
            )
    assert not _refusal(grouping, snapshot)


def _impossible(name: str, array: NDArray[Any], grouping: Grouping) -> list[float]:
    if not array.size or (array.dtype.kind == "u" and array.dtype != np.uint8):
        return []
    if array.dtype.kind == "f":
        return [np.nan, np.inf]
    if array.dtype == np.uint8:
        return [2]
    if name.endswith("partitions"):
        return [-1, grouping.setting.partitions]
    low, high = grouping.bounds.get(name, (0, COUNT_MAX))
    kind = np.iinfo(array.dtype)
    return [value for value in (low - 1, high + 1) if kind.min <= value <= kind.max]


def _refusal(grouping: Grouping, snapshot: Snapshot) -> str:
    try:
        grouping.restore(snapshot)
    except SnapshotError as error:
        return str(error)
    return ""


def _options_of(member: Member) -> dict[str, object]:
    return member.kind.Params(**dict(member.options)).model_dump(mode="json")


@check
def cuts_change_no_route(member: Member) -> None:
    """However a batch's share is cut: the same routes, chunk by chunk, and the same state."""
    size = BATCH_RECORDS
    cuts: dict[str, list[int]] = {
        "one by one, then the rest": [*range(60), size],
        "with nothing between": [0, 0, 0, 700, 700, 701, 701, size, size, size],
        "in blocks": [*range(0, size, 256), size],
        "at odd records": [0, 1, 4, 1023, 1025, 2999, size],
    }
    for what, bounds in cuts.items():
        whole, cut = member.make(), member.make()
        for keys, times in batches(count=3):
            chunks = [(keys[a:b], times[a:b]) for a, b in itertools.pairwise(bounds)]
            answers = list(cut.route_chunks(iter(chunks)))
            sizes = [chunk[0].size for chunk in chunks]
            assert [answer.size for answer in answers] == sizes, f"{what}: {sizes}"
            routes = whole.route(keys, times)
            assert np.array_equal(routes, np.concatenate(answers)), f"{what}: other routes"
            assert outcome(whole) == outcome(cut), f"{what}: another state"
            for grouping in (whole, cut):
                grouping.begin_batch(report(keys, routes, PARTITIONS, by_record=False))


@check
def inputs_are_left_alone(member: Member) -> None:
    """Read-only arrays are taken as well, and no argument, nor an earlier answer, is written to."""
    grouping = member.make()
    keys, times = (array.copy() for array in batches()[0])
    for array in (keys, times):
        array.flags.writeable = False
    routes = grouping.route(keys, times)
    kept = routes.copy()
    feedback = report(keys, routes.copy(), PARTITIONS, by_record=True)
    for array in vars(feedback).values():
        array.flags.writeable = False
    grouping.begin_batch(feedback)
    keys, times = (array.copy() for array in batches()[1])
    grouping.route(keys, times)
    unchanged = zip((keys, times, routes), (*batches()[1], kept), strict=True)
    assert all(np.array_equal(now, before) for now, before in unchanged), "an array was changed"


@check
def memory_does_not_grow_with_the_keys(member: Member) -> None:
    """Ten times as many distinct keys, in batches of one size: the same memory, all included."""
    grouping = member.make()
    sizes = []
    for batch in range(30):
        keys = distinct_keys(batch * 2000, 2000)
        grouping.begin_batch()
        grouping.route(keys, times_of(keys.size, batch * keys.size))
        held = sum(array.nbytes for array in grouping.state.values())
        sizes.append((held, len(pickle.dumps(vars(grouping)))))
    (state_before, all_before), (state_after, all_after) = sizes[2], sizes[-1]
    assert state_after <= state_before, f"state: {state_before} bytes, then {state_after}"
    assert all_after <= 1.02 * all_before + 1024, f"in all: {all_before} bytes, then {all_after}"


@check
def hot_keys_have_occurred(member: Member) -> None:
    """Hot keys are keys of the stream, each named once; before the first record there are none."""
    for stream in (batches(), batches(z=0.5), [(distinct_keys(0, 4000), times_of(4000))]):
        grouping = member.make()
        seen = np.empty(0, np.uint64)
        assert grouping.hot_keys().tolist() == [], "hot before the first record"
        for keys, times in stream:
            grouping.begin_batch()
            grouping.route(keys, times)
            seen = np.union1d(seen, keys)
            hot = grouping.hot_keys()
            assert hot.dtype == np.uint64, hot.dtype
            assert np.isin(hot, seen).all(), "a hot key never occurred"
            assert np.unique(hot).size == hot.size, "a hot key is named twice"
            hot[:] = 0
            assert np.isin(grouping.hot_keys(), seen).all(), "the answer is the state itself"


@check
def signals_have_fixed_names_and_finite_values(member: Member) -> None:
    """The same names in the same order at any time; plain, finite floats."""
    grouping = member.make()
    names = list(grouping.signals())
    steps, _ = record_steps(member.make(), batches())
    for step in steps:
        step.play(grouping)
        _assert_signals(grouping, names)
    grouping.set_active([2])
    _assert_signals(grouping, names)
    grouping.begin_batch()
    _assert_signals(grouping, names)


def _assert_signals(grouping: Grouping, names: list[str]) -> None:
    signals = grouping.signals()
    assert list(signals) == names, f"{list(signals)} instead of {names}"
    for name, value in signals.items():
        assert type(value) is float, f"{name}: {type(value)}"
        assert np.isfinite(value), f"{name}: {value}"


@check
def nothing_changes_nothing(member: Member) -> None:
    """No records, as an array, a chunk or no chunk at all: the state stays as it is."""
    grouping = member.make()
    grouping.route(*batches()[0])
    before = outcome(grouping)
    empty = np.empty(0, np.uint64), np.empty(0, np.int64)
    assert grouping.route(*empty).shape == (0,)
    assert [part.size for part in grouping.route_chunks([empty, empty])] == [0, 0]
    assert list(grouping.route_chunks([])) == []
    assert outcome(grouping) == before, "routing nothing changes the state"
