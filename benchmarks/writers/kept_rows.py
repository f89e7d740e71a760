"""Rows of a benchmark of tables, kept as soon as they are measured, so that it can go on later."""

import contextlib
import io
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.engine.report import description
from benchmarks.tables import Row, Table, show

Keys = set[tuple[object, ...]]
_HEAD = """# Writers of a partitioned table

Written by `make bench-tables`; how to read it is in [benchmarks](../README.md). The machine had
other work beside it, so seconds are those of a shared machine: compare the ways of one stream, and
trust files and bytes, which are counted, before seconds.
"""


class KeptRows:
    """The rows of `tables.json` in a folder; a row measured again replaces its older self."""

    def __init__(self, folder: Path, columns: Sequence[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._json, self._page = folder / "tables.json", folder / "tables.md"
        self._columns = columns
        self._rows: list[dict[str, Any]] = []
        with contextlib.suppress(FileNotFoundError):
            self._rows = json.loads(self._json.read_text())["rows"]

    def keys(self) -> Keys:
        """What the rows are known by."""
        return {self._key(row) for row in self._rows}

    def keep(self, rows: Iterable[Row], line: str, minutes: float | None) -> Iterator[Row]:
        """Pass rows on, each kept; none is begun after `minutes`."""
        deadline = time.monotonic() + 60 * minutes if minutes else float("inf")
        about = {
            "line": line,
            "machine": description(),
            "load_before": round(os.getloadavg()[0], 1),
        }
        for row in rows:
            others = [each for each in self._rows if self._key(each) != self._key(row)]
            measured = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
            self._rows = [*others, {**row, **about, "measured": measured}]
            self._json.write_text(json.dumps({"rows": self._rows}, indent=1) + "\n")
            yield row
            if time.monotonic() > deadline:
                return

    def write(self, formats: Mapping[str, str]) -> None:
        """Print the page into its file."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            print(_HEAD)
            for store in dict.fromkeys(row["store"] for row in self._rows):
                own = [row for row in self._rows if row["store"] == store]
                own.sort(key=lambda row: (row["rows"], row["format"], row["z"]))
                show(Table(store, own[-1]["line"], formats, own))
                times = sorted(row["measured"] for row in own)
                loads = sorted(row["load_before"] for row in own)
                print(
                    f"From {times[0]} to {times[-1]}, load {loads[0]} to {loads[-1]} just before,"
                    f" on {own[-1]['machine']}.\n"
                )
        self._page.write_text(text.getvalue().rstrip() + "\n")

    def _key(self, row: Mapping[str, Any]) -> tuple[object, ...]:
        return tuple(row[name] for name in self._columns)
