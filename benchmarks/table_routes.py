"""Files and the fullest writer of a partitioned table, routed by `level` without Spark.

    python -m benchmarks.table_routes

Prints the tables of docs/tables.md: 200,000 rows of 1,000 values a batch, for 16 writers, each
source with an equal share of them, one behind the other. It counts and times nothing, so that it
gives the same figures everywhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.engine.measure import zipf
from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.simulation.loads import KeyBatch
from unskew.jobs.commands.prediction.table_writers import LevelOptions, Reading, route_by_level

ROWS, VALUES, WRITERS, BATCHES = 200_000, 1000, 16, 4
SKEWS = (0.0, 0.8, 1.4)
EVEN_BYTES = 108
TARGET = "a 64th"


@dataclass(frozen=True)
class Batch:
    """What the writers of a batch have."""

    files: int
    fullest: float
    """Work of the writer with most over the mean: rows, or bytes and what files cost."""


def run(
    z: float,
    sources: int,
    *,
    options: Mapping[str, Any] | None = None,
    sizes: Int64s | None = None,
    routed_cost: int = 0,
    file_cost: int = 0,
) -> list[Batch]:
    """Route the batches of a stream; `sizes` by value. A file is taken to cost `file_cost`."""
    hashes: UInt64s = np.random.default_rng(7).integers(0, 2**63, VALUES).astype(np.uint64)
    ranks = zipf(ROWS * BATCHES, z, VALUES).reshape(BATCHES, ROWS)
    readings = [
        Reading.share_evenly(
            KeyBatch.from_hashes(hashes[each]), sources, None if sizes is None else sizes[each]
        )
        for each in ranks
    ]
    level = LevelOptions(options or {}, file_cost=routed_cost)
    routes = route_by_level(readings, WRITERS, level)
    pairs = zip(readings, routes, strict=True)
    return [_describe(read, route, file_cost) for read, route in pairs]


def _describe(read: Reading, route: Int32s, file_cost: int) -> Batch:
    loads = read.batch.count(route, WRITERS)
    work = loads.records if read.sizes is None else np.bincount(route, read.sizes, WRITERS)
    work = work + file_cost * loads.keys
    return Batch(int(loads.pairs), float(work.max() / work.mean()))


def by_rows() -> Iterator[str]:
    """Files of the first batch, then of the last and its fullest writer."""
    yield "| z | 1 source | 4 | 16 | 48 |"
    for z in SKEWS:
        runs = [run(z, sources) for sources in (1, 4, 16, 48)]
        yield _row(z, *(f"{r[0].files:,}, {r[-1].files:,}, {r[-1].fullest:.3f}" for r in runs))


def by_bytes() -> Iterator[str]:
    """Rows of 20 to 400 bytes by value; files and fullest writer of the last batch."""
    sizes = np.random.default_rng(3).integers(20, 401, VALUES)
    yield f"| z | bytes, 4 sources | 16 | 48 | a target of {TARGET} of the batch, 4 | 16 | 48 |"
    for z in SKEWS:
        batch_bytes = int(sizes[zipf(ROWS * BATCHES, z, VALUES)].sum()) // BATCHES
        whole = {"target_file_bytes": batch_bytes // 64}
        lasts = [
            run(z, sources, options={"balance": "bytes", **more}, sizes=sizes)[-1]
            for more in ({}, whole)
            for sources in (4, 16, 48)
        ]
        yield _row(z, *map(_show, lasts))


def by_cost() -> Iterator[str]:
    """What a file costs, as part of a mean value's bytes: routed by rows, and by bytes and it."""
    sizes = np.full(VALUES, EVEN_BYTES)
    mean = ROWS * EVEN_BYTES // VALUES
    yield "| a file costs | z | by rows | by bytes and files |"
    for part, name in ((0.125, "an eighth"), (9.0, "nine times")):
        cost = round(part * mean)
        for z in SKEWS:
            rows = run(z, 6, sizes=sizes, file_cost=cost)[-1]
            options = {"balance": "bytes"}
            both = run(z, 6, options=options, sizes=sizes, routed_cost=cost, file_cost=cost)[-1]
            yield _row(name, f"{z:g}", _show(rows), _show(both))


def _show(batch: Batch) -> str:
    return f"{batch.files:,}, {batch.fullest:.3f}"


def _row(first: object, *others: str) -> str:
    return f"| {first if isinstance(first, str) else f'{first:g}'} | {' | '.join(others)} |"


def main() -> None:
    """Print the tables."""
    for table in (by_rows, by_bytes, by_cost):
        print((table.__doc__ or "").strip(), end="\n\n")
        for row in table():
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
