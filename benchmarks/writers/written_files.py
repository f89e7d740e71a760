"""Which files the batches of a table wrote, looked at when its query has ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq


@dataclass(frozen=True)
class Written:
    """What one batch wrote, by writer."""

    seconds: tuple[float, ...]
    files: tuple[int, ...]
    bytes: tuple[int, ...]
    rows: tuple[int, ...]


def written(path: Path, seconds: Sequence[list[float]], times: Sequence[int]) -> list[Written]:
    """What batches wrote: their files are those that were last changed between two times."""
    files = sorted((file.stat().st_mtime_ns, file) for file in path.rglob("part-*.parquet"))
    batches = []
    for own, start, end in zip(seconds, times, times[1:], strict=False):
        names = [file for changed, file in files if start <= changed < end]
        sizes = {file: file.stat().st_size for file in names}
        rows = {file: pq.read_metadata(file).num_rows for file in names}
        writers = max(len(own), 1)
        each = (by_writer(values, writers) for values in (dict.fromkeys(names, 1), sizes, rows))
        batches.append(Written(tuple(own), *each))
    return batches


def by_writer(files: Mapping[Path, int], writers: int) -> tuple[int, ...]:
    """Sums over files of each task that wrote some: its number is in the names of its files."""
    sums = dict.fromkeys(range(writers), 0)
    for file, value in files.items():
        writer = int(file.name.split("-")[1])
        sums[writer] = sums.get(writer, 0) + value
    return tuple(sums.values())
