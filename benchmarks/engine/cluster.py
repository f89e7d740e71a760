"""Cells of `where` on a real cluster: two worker processes, each with several executors.

Slots are as many as in `where`, but a partition may be on another executor in the next batch, and
records move between processes. What the operator keeps for a key is lost then; `stays` says how
often a partition was where it was before.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.engine import where
from benchmarks.engine.measure import Bench
from benchmarks.engine.skew import SLOTS, warm_up
from benchmarks.engine.where import BORDERS, Cell
from benchmarks.tables import Row, Table
from tests.support.running import cluster as standalone
from unskew.jobs.observe.batches.batch_stats import BatchStats

WORKERS, EXECUTOR_CORES, EXECUTOR_MEMORY = 2, 4, "640m"
CELLS = (
    *BORDERS,
    Cell(0.0, 10.0, partial_bytes=4096),
    Cell(1.4, 10.0, 10.0, keys=1000),
)


@dataclass(frozen=True)
class Size(where.Size):
    """How much is measured."""

    batches: int = 4
    cells: tuple[Cell, ...] = CELLS
    ways: tuple[str, ...] = ("local", "level", "none")


QUICK = Size(4000, 3, (Cell(1.4, 10.0),), warm_rounds=1)


def cluster(bench: Bench, size: Size) -> Table:
    """The ways of `where`, on executors."""
    table = where.where(bench, size)
    executors = SLOTS // EXECUTOR_CORES
    line = (
        f"Cells of `where` on a standalone cluster of this machine: {WORKERS} worker processes,"
        f" {executors} executors of {EXECUTOR_CORES} slots; medians of {size.batches - 1} warm"
        " batches. `stays`: of the partitions of `level`, how many ran on the executor that they"
        f" had in the batch before (one in {executors} would by chance)."
    )
    formats = dict(table.formats)
    formats["stays"] = "5.2f"
    return Table("cluster", line, formats, _cluster(bench, size))


def _cluster(bench: Bench, size: Size) -> Iterator[Row]:
    if not size.cells:
        return
    with cluster_settings(Path(bench.checkpoint())) as settings:
        master = settings.pop("spark.master")
        with bench.spark(master, **settings) as (spark, meter):
            warm_up(bench, spark, meter, size.records)
            yield from where.measure_cells(bench, spark, meter, size, _describe_placement)


@contextmanager
def cluster_settings(folder: Path) -> Iterator[dict[str, str]]:
    """A cluster with as many slots as `where` has, as the settings of its sessions."""
    cores = SLOTS // WORKERS
    with standalone.cluster(folder, WORKERS, cores=cores, memory="2g") as started:
        yield started.settings() | {
            "spark.executor.cores": str(EXECUTOR_CORES),
            "spark.executor.memory": EXECUTOR_MEMORY,
        }


def _describe_placement(measured: Any) -> Row:
    return {"stays": share_that_stays(measured["level"].stats)}


def share_that_stays(batches: Sequence[BatchStats]) -> float | None:
    """Of the partitions, those on the executor that they had in the batch before; None of one."""
    same = [
        before.executors.get(partition) == executor
        for before, after in pairwise(batches)
        for partition, executor in after.executors.items()
    ]
    return sum(same) / len(same) if same else None
