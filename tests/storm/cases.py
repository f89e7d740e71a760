"""The kinds of cases, by name, and what the cases of a storm share."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.storm.faults import damage, drivers, executors, frozen, outages, queries, reads
from tests.storm.harness.case import Case
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

    def run(self, kind: str, seed: int, counts: Counts, seconds: float) -> None:
        """Run one case, counted as it goes; its folder stays if it fails."""
        folder = self.folder / f"{kind}-{seed}"
        CASES[kind](self, Case(kind, seed, folder, self.services, counts, seconds))
        # Spark's maintenance of the state may upload a snapshot after the query's end.
        shutil.rmtree(folder, ignore_errors=True)


CASES: dict[str, Callable[[Storm, Case], None]] = {
    "queries": lambda storm, case: queries.storm_queries(case, storm.jvm),
    "reads": lambda _, case: reads.storm_reads(case),
    "crashes": lambda storm, case: damage.storm_crashes(case, storm.jvm),
    "flips": lambda storm, case: damage.storm_flips(case, storm.jvm),
    "power": lambda storm, case: damage.storm_power(case, storm.jvm),
    "broker": lambda storm, case: outages.storm_broker(case, storm.jvm),
    "postgres": lambda storm, case: outages.storm_postgres(case, storm.jvm),
    "disk": lambda storm, case: outages.storm_disk(case, storm.jvm),
    "drivers": lambda _, case: drivers.storm_drivers(case),
    "frozen": lambda _, case: frozen.storm_frozen(case),
    "executors": lambda storm, case: executors.storm_executors(case, storm.cluster),
    "shuffle": lambda storm, case: executors.storm_shuffle_files(case, storm.cluster),
    "unlocked": lambda _, case: frozen.storm_unlocked(case),
}
"""What a kind of case is called on the command line, and what runs it."""
QUICK = ("queries", "crashes", "flips", "power", "broker", "postgres", "disk")
"""Those that need no process of a driver for each start."""
