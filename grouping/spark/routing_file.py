"""What a source routed of one batch, as the journal keeps it: how much, and what it measured."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np

from unskew.grouping.base import Int32s, UInt64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot

_KINDS = {"routes": np.int64, "seconds": np.float64, "hot_keys": np.uint64}


@dataclass(frozen=True)
class Routes:
    """A source's routes of one batch as the journal keeps them: their number and checksum."""

    records: int = 0
    checksum: int = 0

    def add(self, routes: Int32s) -> "Routes":
        """Add the routes that follow; how they are cut into arrays changes nothing."""
        return Routes(self.records + routes.size, zlib.crc32(routes.data, self.checksum))


@dataclass(frozen=True)
class RoutingStats:
    """What a source measured while it routed one batch: for display, routing does not use it."""

    seconds: float
    hot_keys: UInt64s = field(default_factory=lambda: np.empty(0, np.uint64))
    signals: Mapping[str, float] = field(default_factory=dict)


def make_snapshot(routes: Routes, stats: RoutingStats | None) -> Snapshot:
    """Make a snapshot of both, as the journal writes them."""
    arrays: dict[str, Any] = {
        "routes": np.array([routes.records, routes.checksum], np.int64),
        "seconds": np.array([] if stats is None else [stats.seconds], np.float64),
    }
    options: dict[str, Any] = {}
    if stats is not None:
        arrays["hot_keys"] = stats.hot_keys
        options["signals"] = dict(stats.signals)
    return Snapshot("routing", 1, 1, 0, arrays, options)


def read_routes(routing: Snapshot) -> Routes:
    """Read from a checked file what was routed."""
    return Routes(*(int(number) for number in routing.arrays["routes"]))


def read_stats(routing: Snapshot) -> RoutingStats:
    """Read from a checked file what was measured."""
    return RoutingStats(
        float(routing.arrays["seconds"][0]),
        # The version before wrote the time alone.
        routing.arrays.get("hot_keys", np.empty(0, np.uint64)),
        cast("Mapping[str, float]", routing.options.get("signals", {})),
    )


def check_routing(routing: Snapshot) -> None:
    """Raise a SnapshotError if it is not as `routing_to_snapshot` writes it, or did before."""
    arrays = {"hot_keys": np.empty(0, np.uint64), **routing.arrays}
    for name, kind in _KINDS.items():
        if name not in arrays or arrays[name].dtype != kind or arrays[name].ndim != 1:
            raise SnapshotError(f"routing: {name}: missing, or not a list of {kind.__name__}")
    if arrays["routes"].size != len(fields(Routes)):
        raise SnapshotError(f"routing: routes: {arrays['routes'].size} numbers")
    signals = routing.options.get("signals", {})
    if not isinstance(signals, dict) or not all(
        isinstance(value, int | float) for value in signals.values()
    ):
        raise SnapshotError("routing: signals: expected numbers by name")
