"""What it costs a batch that sources agree by the one before: reading what all of them left.

    python -m benchmarks.agreement [--sources 5 16 48] [--records 1000000] [--repeat 5]

A batch is routed, every source writes its state into a journal, and then the sources of the next
batch begin, one after the other, as their tasks do. The first reads all states, reckons, and writes
down what follows; each of the others reads that one file. `s x s` is what it would take if each
read all states and reckoned: s times what the first took.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.tables import MEETS, UNJUDGED, Row, Table, machine, show
from unskew.grouping.base import Grouping, UInt64s
from unskew.grouping.registry import create
from unskew.grouping.simulation.streams.traces import open_trace
from unskew.grouping.spark.agreed_file import read_agreed_before
from unskew.grouping.spark.journal import Journal, name_state

PARTITIONS = 100
TRACES = {0.0: "uniform:keys=10000", 0.8: "zipf:z=0.8,keys=10000"}


def make_sources(name: str, count: int) -> list[Grouping]:
    """The sources of a batch."""
    return [
        create(name, partitions=PARTITIONS, source=source, sources=count) for source in range(count)
    ]


def write_batch(journal: Journal, name: str, sources: int, keys: UInt64s) -> None:
    """Route the first batch and leave the states."""
    for source, router in enumerate(make_sources(name, sources)):
        router.begin_batch(agreed={} if router.wants_agreement else None)
        router.route(np.ascontiguousarray(keys[source::sources]))
        journal.write_state(0, source, router.snapshot())


def measure_row(name: str, z: float, sources: int, records: int, repeat: int) -> Row:
    """Medians of some journals."""
    spec = f"{TRACES[z]},records={records}"
    keys = np.concatenate([chunk.keys for chunk in open_trace(spec).chunks()])
    runs = [_measure(name, sources, keys) for _ in range(repeat)]
    reading, first, other, state, agreed = (median(column) for column in zip(*runs, strict=True))
    return {
        "grouping": name,
        "z": z,
        "sources": sources,
        "state kB": state / 1e3,
        "agreed kB": agreed / 1e3,
        "states ms": reading * 1e3,
        "first ms": first * 1e3,
        "other ms": other * 1e3,
        "batch s": first + (sources - 1) * other,
        "s x s": sources * first,
        MEETS: UNJUDGED,
    }


def _measure(name: str, sources: int, keys: UInt64s) -> tuple[float, float, float, int, int]:
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(folder)
        write_batch(journal, name, sources, keys)
        routers = make_sources(name, sources)
        reading = _seconds(partial(journal.states, 0))
        first, *others = (
            _seconds(partial(read_agreed_before, journal, 1, each)) for each in routers
        )
        batch = Path(folder) / f"{0:012d}"
        state = (batch / name_state(0)).stat().st_size
        return reading, first, median(others), state, (batch / "sources.agreed").stat().st_size


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def agreement(sources: Sequence[int], records: int, repeat: int) -> Table:
    """Measure both groupings that agree."""
    return Table(
        "agreement: what sources read before a batch",
        f"{PARTITIONS} partitions, batches of {records} records of 10^4 keys, a journal on a local"
        f" disk, medians of {repeat}. *state*: the file of one source; *agreed*: what the first"
        " source writes for the others. *states*: reading all states; *first*: that, the reckoning"
        " and the writing; *other*: what each other source takes; *batch*: all of them, one after"
        " the other; *s x s*: the same if each source read and reckoned for itself.",
        {
            "grouping": "<8", "z": "4.1f", "sources": "7", "state kB": "8.1f", "agreed kB": "9.1f",
            "states ms": "9.1f", "first ms": "8.1f", "other ms": "8.1f", "batch s": "7.2f",
            "s x s": "6.2f",
        },
        _rows(sources, records, repeat),
    )  # fmt: skip


def _rows(sources: Sequence[int], records: int, repeat: int) -> Iterator[Row]:
    for name in ("level", "whole"):
        for z in TRACES:
            for count in sources:
                yield measure_row(name, z, count, records, repeat)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("--sources", type=int, nargs="+", default=[5, 16, 48])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args(arguments)
    print(f"{machine()}.\n")
    show(agreement(chosen.sources, chosen.records, chosen.repeat))


if __name__ == "__main__":
    main()
