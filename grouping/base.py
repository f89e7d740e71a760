"""The contract of a grouping: keys in, partitions out, and a state that is a value.

A grouping is one source's router. Routing is a pure function of the keys in their order, the state
before them and the feedback of the batch before: no clock, no global random. Its state is
`self.state`, named numpy arrays that kernels change in place (a number is an array of one).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from unskew.grouping.arguments import check_active, check_feedback, check_range, validate_array
from unskew.grouping.contents import Bounds, check_array, check_numbers, check_options, require
from unskew.grouping.errors import GroupingError, SnapshotError
from unskew.grouping.snapshot import Arrays, Snapshot

UInt64s = NDArray[np.uint64]
Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Float64s = NDArray[np.float64]
Chunk = tuple[UInt64s, Int64s | None]
"""Keys, and of each record its time or its size where the grouping wants that."""

PARTITIONS_MAX = 10_000
SOURCES_MAX = 10_000
SEED_MAX = 2**63 - 1


class GroupingParams(BaseModel):
    """A grouping's options: the only place where a default or a bound is written."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


@dataclass(frozen=True)
class Setting:
    """Where a grouping works: how many partitions, which of how many sources, which seed."""

    partitions: int
    source: int = 0
    sources: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        self._check("partitions", 1, PARTITIONS_MAX)
        self._check("sources", 1, SOURCES_MAX)
        self._check("source", 0, self.sources - 1)
        self._check("seed", 0, SEED_MAX)

    def _check(self, name: str, low: int, high: int) -> None:
        object.__setattr__(self, name, check_range(name, getattr(self, name), low, high))


@dataclass(frozen=True)
class Feedback:
    """What the partitions reported of the last batch, the same for every source.

    `records` and `busy_seconds` have one entry a partition. The other four are rows: a key's
    records in a partition and the seconds they took; empty where an operator measures no rows.
    """

    records: Int64s
    busy_seconds: Float64s
    key_partitions: Int32s = field(default_factory=lambda: np.empty(0, np.int32))
    key_hashes: UInt64s = field(default_factory=lambda: np.empty(0, np.uint64))
    key_records: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    key_seconds: Float64s = field(default_factory=lambda: np.empty(0, np.float64))


class Grouping(ABC):
    """One source's router; a subclass gives `name`, `Params`, its state and `_route`."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Version of the state's layout: a snapshot of another version is an error."""
    Params: ClassVar[type[GroupingParams]]
    splits: ClassVar[bool] = True
    """May one key go to several partitions?"""
    wants_feedback: ClassVar[bool] = False
    growing: ClassVar[frozenset[str]] = frozenset()
    """Names of the arrays whose length is not fixed by the parameters."""
    bounds: ClassVar[Bounds] = {}
    """Least and largest number of an array of whole numbers, if not those of a count."""
    checks: ClassVar[tuple[Callable[[Arrays], None], ...]] = ()
    """What must hold among the arrays of a state: each raises a SnapshotError."""

    def __init__(self, setting: Setting, params: GroupingParams) -> None:
        self.params = params
        self.setting = setting
        self.state: dict[str, NDArray[Any]] = {"active": np.ones(setting.partitions, np.uint8)}
        self.active: Int32s = np.arange(setting.partitions, dtype=np.int32)

    @property
    def wants_timestamps(self) -> bool:
        """Does `route` need the records' times (int64, microseconds)?"""
        return False

    @property
    def wants_sizes(self) -> bool:
        """Can `route` use the records' sizes in bytes? Without them, all are alike."""
        return False

    @property
    def wants_agreement(self) -> bool:
        """Do sources agree, before a batch, by the states that all left in the one before?"""
        return False

    def route(self, keys: UInt64s, beside: Int64s | None = None) -> Int32s:
        """The partition of each key, in order. `keys` are 64-bit hashes.

        beside: of each record its time or its size, for a grouping that wants that.
        """
        keys = validate_array("keys", keys, np.uint64)
        wanted = "timestamps" if self.wants_timestamps else "sizes"
        if not (self.wants_timestamps or self.wants_sizes):
            beside = None
        elif beside is None:
            if self.wants_timestamps:
                raise GroupingError(f"{self.name}: {wanted}: missing, and this grouping needs them")
        else:
            beside = validate_array(wanted, beside, np.int64)
            if beside.size != keys.size:
                raise GroupingError(
                    f"{self.name}: {wanted}: as many as keys, {keys.size} (got {beside.size})"
                )
        out = np.empty(keys.size, np.int32)
        if keys.size:
            self._route(keys, beside, out)
        return out

    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        """Route a batch's share that comes in chunks; how it is cut changes no route."""
        for keys, beside in chunks:
            yield self.route(keys, beside)

    def begin_batch(self, feedback: Feedback | None = None, agreed: Arrays | None = None) -> None:
        """A micro-batch begins: all partitions are idle, and the last one's reports are known.

        `agreed` is what `agree` made of the states of the batch before.
        """
        if feedback is not None:
            check_feedback(feedback, self.setting.partitions)
        self._take_agreed(agreed or {})
        self._begin_batch(feedback)

    def agree(self, states: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """Derive from the states that all sources left what they share in the next batch.

        Each source derives the same.
        """
        return {}

    def make_up_agreement(self, keys: UInt64s) -> Arrays:
        """Make up an agreement for `keys`, so that warm-up compiles the kernels that use one."""
        return {}

    def set_active(self, partitions: Sequence[int]) -> None:
        """Route only to these partitions from now on."""
        chosen = check_active(partitions, self.setting.partitions)
        self.state["active"][:] = 0
        self.state["active"][chosen] = 1
        self._update_active()

    def hot_keys(self) -> UInt64s:
        """The keys this grouping treats as hot now, hottest first."""
        return np.empty(0, np.uint64)

    def signals(self) -> dict[str, float]:
        """The grouping's own figures for the metrics, by a fixed set of names."""
        return {}

    def snapshot(self) -> Snapshot:
        """A copy of the state."""
        arrays = {name: array.copy() for name, array in self.state.items()}
        where = self.setting
        options = self.params.model_dump(mode="json")
        return Snapshot(self.name, self.version, where.partitions, where.seed, arrays, options)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from `snapshot`, which must be of this grouping with these settings and options."""
        snapshot = self._upgrade(snapshot)
        self.check(snapshot)
        self.state = {name: snapshot.arrays[name].copy() for name in self.state}
        self._update_active()

    def check(self, snapshot: Snapshot) -> None:
        """Raise a SnapshotError if this grouping could not go on from `snapshot`."""
        snapshot = self._upgrade(snapshot)
        expected = {
            "grouping": self.name,
            "version": self.version,
            "partitions": self.setting.partitions,
            "seed": self.setting.seed,
            "arrays": sorted(self.state),
        }
        for what, value in expected.items():
            given = sorted(snapshot.arrays) if what == "arrays" else getattr(snapshot, what)
            if given != value:
                raise SnapshotError(f"snapshot: {what}: expected {value!r} (got {given!r})")
        check_options(self.params, snapshot.options)
        for name, array in self.state.items():
            check_array(name, snapshot.arrays[name], array, growing=name in self.growing)
        check_numbers(snapshot.arrays, self.setting.partitions, self.bounds)
        require(snapshot.arrays["active"].any(), "active", "at least one partition (got none)")
        self._check_state(snapshot.arrays)

    def _check_state(self, state: Arrays) -> None:
        """Raise a SnapshotError if arrays of the right types and bounds contradict each other."""
        for check in self.checks:
            check(state)

    def _upgrade(self, snapshot: Snapshot) -> Snapshot:
        """Convert an older version's snapshot to this one's; return it unchanged if it cannot."""
        return snapshot

    @abstractmethod
    def _route(self, keys: UInt64s, beside: Int64s | None, out: Int32s) -> None:
        """Fill `out`; called with at least one key and checked arguments."""

    def _begin_batch(self, feedback: Feedback | None) -> None:  # noqa: B027 - most need nothing here
        """Take `feedback`, forget what only the last batch needed."""

    def _take_agreed(self, agreed: Arrays) -> None:  # noqa: B027 - likewise
        """Take what the sources agreed on; empty where nothing is known of the batch before."""

    def _update_active(self) -> None:
        """`state["active"]` is new: bring what follows from it up to date."""
        self.active = np.flatnonzero(self.state["active"]).astype(np.int32)
