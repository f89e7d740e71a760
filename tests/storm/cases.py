"""The kinds of cases, by name, and what the cases of a storm share."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.storm.faults import damage, drivers, executors, frozen, outages, queries, reads
from tests.storm.harness.counts import Counts
from tests.storm.harness.in_process import Jvm, jvm
from tests.storm.harness.services import Services
from tests.support.running.cluster import Cluster, cluster


class Storm:
    """Broker, database, JVM and cluster, each started when a case first needs it."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.folder = folder
        self.services = Services(folder, stack)
        self._stack = stack
        self._jvm: Jvm | None = None
        self._cluster: Cluster | None = None

    @property
    def jvm(self) -> Jvm:
        """The JVM of the cases that have none of their own."""
        if self._jvm is None:
            self._jvm = self._stack.enter_context(jvm(self.folder / "jvm.log"))
        return self._jvm

    @property
    def cluster(self) -> Cluster:
        """The standalone cluster."""
        if self._cluster is None:
            self._cluster = self._stack.enter_context(cluster(self.folder / "cluster"))
        return self._cluster

    def case(self, kind: str, seed: int, counts: Counts) -> None:
        """One case, counted as it goes; its folder stays if it fails."""
        folder = self.folder / f"{kind}-{seed}"
        CASES[kind](self, seed, folder, counts)
        # Spark's maintenance of the state may upload a snapshot after the query's end.
        shutil.rmtree(folder, ignore_errors=True)


CASES: dict[str, Callable[[Storm, int, Path, Counts], None]] = {
    "queries": lambda s, seed, at, counts: queries.storm_queries(
        seed, at, s.services, s.jvm, counts
    ),
    "reads": lambda s, seed, at, counts: reads.storm_reads(seed, at, counts),
    "crashes": lambda s, seed, at, counts: damage.storm_crashes(
        seed, at, s.services, s.jvm, counts
    ),
    "flips": lambda s, seed, at, counts: damage.storm_flips(seed, at, s.services, s.jvm, counts),
    "power": lambda s, seed, at, counts: damage.storm_power(seed, at, s.services, s.jvm, counts),
    "broker": lambda s, seed, at, counts: outages.storm_broker(seed, at, s.services, s.jvm, counts),
    "postgres": lambda s, seed, at, counts: outages.storm_postgres(
        seed, at, s.services, s.jvm, counts
    ),
    "disk": lambda s, seed, at, counts: outages.storm_disk(seed, at, s.services, s.jvm, counts),
    "drivers": lambda s, seed, at, counts: drivers.storm_drivers(seed, at, s.services, counts),
    "frozen": lambda s, seed, at, counts: frozen.storm_frozen(seed, at, s.services, counts),
    "executors": lambda s, seed, at, counts: executors.storm_executors(
        seed, at, s.services, s.cluster, counts
    ),
    "shuffle": lambda s, seed, at, counts: executors.storm_shuffle_files(
        seed, at, s.services, s.cluster, counts
    ),
    "unlocked": lambda s, seed, at, counts: frozen.storm_unlocked(seed, at, s.services, counts),
}
"""What a kind of case is called on the command line, and what runs it."""
QUICK = ("queries", "crashes", "flips", "power", "broker", "postgres", "disk")
"""Those that need no process of a driver for each start."""
