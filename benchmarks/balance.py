"""Balance and state of groupings over cells of (partitions, skew, keys, records), as a table.

`python -m benchmarks.balance heads` measures the groupings that treat the head of a stream apart,
in every cell of the paper's simulations. A row is the median of some seeds: the imbalance over all
sources together, (max - mean) / records; the (key, partition) pairs; and what the paper's formula
gives for the exact head, `sum(head) min(f, choices) + sum(tail) min(f, 2)`.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grouping.d_choices import solve_choices
from grouping.hashing import mix64
from grouping.registry import create

ZIPFS = tuple(round(0.5 + 0.1 * step, 1) for step in range(16))
PARTITIONS = (5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Cell:
    """One place of the table: a Zipf stream and the partitions and sources it meets."""

    partitions: int
    zipf: float
    keys: int = 10_000
    records: int = 1_000_000
    sources: int = 5


@dataclass(frozen=True)
class Subject:
    """One grouping with its options."""

    grouping: str
    options: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The grouping as `unskew simulate` would have it."""
        shown = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.grouping}:{shown}" if shown else self.grouping


@dataclass(frozen=True)
class Measured:
    """What one run gave."""

    imbalance: float
    pairs: int
    formula_pairs: int
    distinct_keys: int

    @property
    def pairs_ratio(self) -> float:
        """Pairs over what the formula gives."""
        return self.pairs / self.formula_pairs


def zipf_shares(zipf: float, keys: int) -> NDArray[np.float64]:
    """The probability of each key, the most frequent first."""
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -zipf
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


@lru_cache(maxsize=8)  # the same few seeds for every grouping and number of partitions
def zipf_ranks(zipf: float, keys: int, records: int, seed: int) -> NDArray[np.unsignedinteger]:
    """A stream, as ranks from 0."""
    upto = np.cumsum(zipf_shares(zipf, keys))
    draws = np.random.default_rng(seed).random(records)
    ranks = np.minimum(np.searchsorted(upto, draws, side="right"), keys - 1)
    return ranks.astype(np.min_scalar_type(keys))


@cache
def key_hashes(keys: int) -> NDArray[np.uint64]:
    """A hash for each rank: any distinct 64 bits."""
    return np.array([mix64(np.uint64(rank + 1)) for rank in range(keys)], np.uint64)


def exact_choices(subject: Subject, cell: Cell) -> NDArray[np.int64]:
    """How many choices each rank has, were the distribution known: the paper's `choices`."""
    n, shares = cell.partitions, zipf_shares(cell.zipf, cell.keys)
    head = shares[shares >= (subject.options.get("theta") or 1 / (5 * n))]
    hot = {
        "key": 1,
        "partial_key": 2,
        "d_choices": solve_choices(head, n, subject.options.get("epsilon", 1e-4)),
    }.get(subject.grouping, n)
    choices = np.full(cell.keys, 1 if subject.grouping == "key" else min(2, n))
    choices[: head.size] = hot
    return choices


def measure(subject: Subject, cell: Cell, seed: int) -> Measured:
    """Send a cell's stream, dealt round robin to the sources, through the grouping."""
    n, ranks = cell.partitions, zipf_ranks(cell.zipf, cell.keys, cell.records, seed)
    hashes = key_hashes(cell.keys)
    loads = np.zeros(n, np.int64)
    met = np.zeros((cell.keys, n), np.bool_)
    for source in range(cell.sources):
        share = ranks[source :: cell.sources]
        router = create(
            subject.grouping, partitions=n, source=source, sources=cell.sources, seed=seed,
            **subject.options,
        )  # fmt: skip
        routes = router.route(hashes[share])
        loads += np.bincount(routes, minlength=n)
        met[share, routes] = True
    counts = np.bincount(ranks, minlength=cell.keys)
    return Measured(
        imbalance=float((loads.max() - loads.mean()) / cell.records),
        pairs=int(met.sum()),
        formula_pairs=int(np.minimum(counts, exact_choices(subject, cell)).sum()),
        distinct_keys=int((counts > 0).sum()),
    )


def medians(subject: Subject, cell: Cell, seeds: Iterable[int]) -> Measured:
    """The median of each figure over the seeds."""
    runs = [measure(subject, cell, seed) for seed in seeds]
    return Measured(
        median(run.imbalance for run in runs),
        int(median(run.pairs for run in runs)),
        int(median(run.formula_pairs for run in runs)),
        int(median(run.distinct_keys for run in runs)),
    )


def heads(records: int) -> Iterator[tuple[Subject, Cell]]:
    """Every cell of the paper's simulations, for the groupings with a head."""
    subjects = [
        Subject("partial_key", {}),
        Subject("d_choices", {}),
        Subject("d_choices", {"raise_choices": True}),
        Subject("w_choices", {}),
        Subject("round_robin_head", {}),
    ]
    for zipf in ZIPFS:
        for partitions in PARTITIONS:
            for subject in subjects:
                yield subject, Cell(partitions, zipf, records=records)


TABLES: dict[str, Callable[[int], Iterator[tuple[Subject, Cell]]]] = {"heads": heads}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=sorted(TABLES))
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--grouping", help="only rows whose grouping begins with this")
    parser.add_argument("--zipf", type=float, help="only rows with this skew")
    options = parser.parse_args()
    print(f"{'n':>4} {'z':>4}  {'grouping':32} {'imbalance':>9} {'pairs':>8} {'formula':>8}  ratio")
    for subject, cell in TABLES[options.table](options.records):
        if options.grouping and not subject.label.startswith(options.grouping):
            continue
        if options.zipf is not None and cell.zipf != options.zipf:
            continue
        found = medians(subject, cell, range(options.seeds))
        print(
            f"{cell.partitions:4} {cell.zipf:4.1f}  {subject.label:32} {found.imbalance:9.1e}"
            f" {found.pairs:8} {found.formula_pairs:8} {found.pairs_ratio:6.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
