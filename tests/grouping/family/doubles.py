"""Groupings that each break one promise. `tests/grouping/family/test_checks_bite.py` wants every
one rejected.

Each says by `@breaks` which check must reject it, and with which words.
"""

import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, TypeVar

import numpy as np

from tests.grouping.family.members import Member
from unskew.grouping.algorithms.key import Key, KeyParams
from unskew.grouping.algorithms.shuffle import Shuffle, ShuffleParams
from unskew.grouping.base import Chunk, Feedback, Grouping, Int32s, Int64s, Setting, UInt64s
from unskew.grouping.hashing import salts
from unskew.grouping.kernels import kernel
from unskew.grouping.snapshot import Snapshot

Kind = TypeVar("Kind", bound=type[Grouping])
DOUBLES: list[tuple[str, Member, str]] = []
"""(check, double, what the check says)"""


def breaks(check: str, says: str) -> Callable[[Kind], Kind]:
    """The double breaks the promise that `check` looks for."""

    def register(kind: Kind) -> Kind:
        kind.name = f"double_{kind.__name__}"
        DOUBLES.append((check, Member(kind), says))
        return kind

    return register


@breaks("routes_are_in_range_and_total", "routes to")
class OneTooMany(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        out[keys == 2**64 - 1] = self.setting.partitions


@breaks("routes_are_in_range_and_total", "records")
class DropsOne(Key):
    def route(self, keys: UInt64s, timestamps: Int64s | None = None) -> Int32s:
        return super().route(keys[:-1])


@breaks("routes_are_in_range_and_total", "int64")
class WideAnswers(Key):
    def route(self, keys: UInt64s, timestamps: Int64s | None = None) -> Int32s:
        return super().route(keys).astype(np.int64)  # type: ignore[return-value]


@breaks("one_partition_gets_all", "elsewhere")
class SparesTheFirst(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        np.maximum(out, 1, out=out)


@breaks("same_seed_same_routes", "differs")
class KnowsItsSiblings(Key):
    calls: ClassVar[Iterator[int]] = itertools.count()

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        out[:] = next(self.calls) % self.setting.partitions


@breaks("another_seed_gives_other_routes", "the seed changes nothing")
class Unseeded(Key):
    def __init__(self, setting: Setting, params: KeyParams) -> None:
        super().__init__(setting, params)
        self._salt = salts(0, 1)[0]


@breaks("replication_is_between_one_and_the_partitions", "replication")
class Everywhere(Shuffle):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        out[:] = np.arange(keys.size) % (40 * self.setting.partitions)


@breaks("keys_stay_whole_where_that_is_promised", "split")
class SplitsQuietly(Shuffle):
    splits = False


@breaks("sources_agree_on_whole_keys", "several partitions")
class KnowsItsOwnKeys(Key):
    """Sends the keys that its source had in the batch before to the next partition."""

    growing = frozenset({"known"})

    def __init__(self, setting: Setting, params: KeyParams) -> None:
        super().__init__(setting, params)
        self.state["known"] = np.empty(0, np.uint64)

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        moved = np.isin(keys, self.state["known"])
        out[moved] = (out[moved] + 1) % self.setting.partitions
        self.state["known"] = np.unique(keys)


@breaks("balance_is_no_worse_than_key_grouping", "largest load")
class AllToOne(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        out[:] = self.active[0]


@breaks("partitions_that_are_away_get_nothing", "active .* routes to")
class SendsThemAway(Key):
    def _update_active(self) -> None:
        """Go on with all partitions."""


@breaks("partitions_that_are_away_get_nothing", "after all came back only")
class WelcomesNobody(Key):
    def set_active(self, partitions: Sequence[int]) -> None:
        before = set(self.active.tolist())
        super().set_active(partitions)
        stayed = sorted(before & set(self.active.tolist()))
        self.active = np.array(stayed or list(partitions), np.int32)

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        out[:] = self.active[np.arange(keys.size) % self.active.size]


class Timed(Key):
    """Asks for times; its subclasses trust them."""

    @property
    def wants_timestamps(self) -> bool:
        return True


@breaks("unsorted_times_give_defined_routes", "backwards: routes to")
class ExpectsOrder(Timed):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        assert timestamps is not None
        seconds = (timestamps - timestamps[0]) // 1_000_000
        out[:] = np.minimum(seconds, self.setting.partitions - 1)


@breaks("unsorted_times_give_defined_routes", "shuffled")
class SortsEachChunk(Timed):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        order = np.argsort(np.asarray(timestamps), kind="stable")
        out[order] = np.arange(keys.size) % self.setting.partitions


@breaks("odd_reports_are_fine", "cost")
class DividesByRecords(Key):
    def __init__(self, setting: Setting, params: KeyParams) -> None:
        super().__init__(setting, params)
        self.state["cost"] = np.ones(setting.partitions)

    def _begin_batch(self, feedback: Feedback | None) -> None:
        if feedback is not None:
            with np.errstate(all="ignore"):
                self.state["cost"][:] = feedback.busy_seconds / feedback.records


@breaks("same_seed_same_state", "the states differ")
class NumbersItself(Key):
    made: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self, setting: Setting, params: KeyParams) -> None:
        super().__init__(setting, params)
        self.state["number"] = np.array([next(self.made)])


class Turns(Grouping):
    """Round robin with its turn in the state; the base of those that lose it."""

    Params = ShuffleParams

    def __init__(self, setting: Setting, params: ShuffleParams) -> None:
        super().__init__(setting, params)
        self.state["turn"] = np.zeros(1, np.int64)

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        turn = self.state["turn"]
        out[:] = self.active[(turn[0] + np.arange(keys.size)) % self.active.size]
        turn += keys.size


@breaks("a_restored_grouping_continues_identically", "goes on otherwise")
class SavesNothing(Turns):
    def snapshot(self) -> Snapshot:
        turn = self.state.pop("turn")
        snapshot = super().snapshot()
        self.state["turn"] = turn
        snapshot.arrays["turn"] = np.zeros(1, np.int64)  # type: ignore[index]
        return snapshot


@breaks("a_restored_grouping_continues_identically", "goes on otherwise")
class KeepsACache(Turns):
    def __init__(self, setting: Setting, params: ShuffleParams) -> None:
        super().__init__(setting, params)
        self._first = 0

    def _begin_batch(self, feedback: Feedback | None) -> None:
        self._first = int(self.state["turn"][0]) // 1000

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        out[:] = (out + self._first) % self.setting.partitions


@breaks("a_short_life_is_sound", "restored, it routes otherwise")
class ForgetsOnRestore(Turns):
    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self.state["turn"] += 1


@breaks("a_snapshot_is_a_value", "routing changes a snapshot")
class HandsOutItsArrays(Turns):
    def snapshot(self) -> Snapshot:
        setting = self.setting
        arrays = dict(self.state)
        return Snapshot(self.name, self.version, setting.partitions, setting.seed, arrays)


@breaks("a_snapshot_is_a_value", "routing changes a snapshot")
class TakesOverArrays(Turns):
    def restore(self, snapshot: Snapshot) -> None:
        self.state = dict(snapshot.arrays)
        self._update_active()


@breaks("a_snapshot_knows_who_is_away", "all were active")
class CallsAllBack(Key):
    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self.set_active(range(self.setting.partitions))


@breaks("a_snapshot_of_wrong_numbers_is_refused", "active 2: taken")
class TakesAnyNumber(Turns):
    def check(self, snapshot: Snapshot) -> None:
        pass


@breaks("cuts_change_no_route", "other routes")
class BeginsWithEachChunk(Turns):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        self.state["turn"][:] = 0
        super()._route(keys, timestamps, out)


@breaks("cuts_change_no_route", "with nothing between")
class SwallowsEmptyChunks(Key):
    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        return (self.route(keys) for keys, _ in chunks if keys.size)


@breaks("inputs_are_left_alone", "read-only")
class SortsItsInput(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        keys.sort()
        super()._route(keys, timestamps, out)


@breaks("inputs_are_left_alone", "was changed")
class WritesWhereItMay(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        if keys.flags.writeable:
            keys[:] = 0


@breaks("inputs_are_left_alone", "was changed")
class AnswersInOneArray(Key):
    def route(self, keys: UInt64s, timestamps: Int64s | None = None) -> Int32s:
        answer = super().route(keys)
        self._answer = getattr(self, "_answer", answer)
        self._answer[:] = answer
        return self._answer


@breaks("memory_does_not_grow_with_the_keys", "in all")
class RemembersInASet(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        self._seen = getattr(self, "_seen", set()) | set(keys.tolist())


@breaks("memory_does_not_grow_with_the_keys", "state")
class RemembersInItsState(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        self.state["seen"] = np.union1d(self.state.get("seen", keys), keys)


@breaks("hot_keys_have_occurred", "before the first record")
class Guesses(Key):
    def hot_keys(self) -> UInt64s:
        return np.array([42], np.uint64)


class RemembersTheLast(Key):
    """Its hot key is the last one."""

    times = 1

    def __init__(self, setting: Setting, params: KeyParams) -> None:
        super().__init__(setting, params)
        self.state["last"] = np.empty(0, np.uint64)

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        self.state["last"] = np.repeat(keys[-1:], self.times)

    def hot_keys(self) -> UInt64s:
        return self.state["last"].copy()


@breaks("hot_keys_have_occurred", "named twice")
class SaysItTwice(RemembersTheLast):
    times = 2


@breaks("hot_keys_have_occurred", "never occurred")
class HotPartitions(RemembersTheLast):
    def hot_keys(self) -> UInt64s:
        return super().hot_keys() >> np.uint64(60)


@breaks("hot_keys_have_occurred", "the state itself")
class HandsOutItsKeys(RemembersTheLast):
    def hot_keys(self) -> UInt64s:
        return self.state["last"]


@breaks("signals_have_fixed_names_and_finite_values", "instead of")
class NamesAsItLikes(Turns):
    def signals(self) -> dict[str, float]:
        return {"turn": 1.0} if self.state["turn"][0] else {}


@breaks("signals_have_fixed_names_and_finite_values", "float64")
class NumpysNumbers(Turns):
    def signals(self) -> dict[str, float]:
        return {"turn": np.float64(1.0)}


@breaks("signals_have_fixed_names_and_finite_values", "share: nan")
class ShareOfNothing(Turns):
    def signals(self) -> dict[str, float]:
        return {"share": float("nan")}


@breaks("nothing_changes_nothing", "routing nothing changes the state")
class CountsCalls(Turns):
    def route(self, keys: UInt64s, timestamps: Int64s | None = None) -> Int32s:
        self.state["turn"] += 1
        return super().route(keys)


@breaks("hash_seeds_change_nothing", "differs by hash seed")
class HashesAString(Key):
    def __init__(self, setting: Setting, params: KeyParams) -> None:
        super().__init__(setting, params)
        self._salt = salts(hash(self.name) & 0xFFFF, 1)[0]


@breaks("kernels_stay_within_their_arrays", "IndexError")
class ReadsBeyond(Key):
    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        super()._route(keys, timestamps, out)
        _compare_neighbours(keys, out)


@kernel
def _compare_neighbours(keys: UInt64s, out: Int32s) -> None:
    for i in range(keys.size):
        if keys[i] == keys[i + 1]:
            out[i] = 0


def in_module(name: str, text: str, kind: type[Grouping]) -> None:
    """Let the double stand in a module of this name that has this docstring."""
    module = types.ModuleType(name, text)
    module.__file__ = __file__
    sys.modules[name] = module
    kind.__module__ = name


HASHING = [Member(HashesAString)]
BEYOND = [Member(ReadsBeyond)]
