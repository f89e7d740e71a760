"""What the engine's benchmark found, kept: JSON, the tables as Markdown, a picture."""

import contextlib
import io
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.tables import Row, Table, machine, processor, show
from unskew.jobs.local.java import find_java

ORDER = (
    "overhead",
    "tiny",
    "aggregate",
    "skew",
    "source",
    "end",
    "instead",
    "time",
    "where",
    "auto",
    "cluster",
    "placement",
)
MACHINE = "machine"
"""The column that says where a row was measured; a table may be measured in pieces."""
PACKAGES = ("pyspark", "pyarrow", "pandas", "confluent-kafka")


def description() -> str:
    """What it was measured on."""
    memory = psutil.virtual_memory().total / 2**30
    java = subprocess.run(
        [str(find_java()), "-version"], capture_output=True, text=True, check=True
    ).stderr.splitlines()[0]
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"{machine()}, {versions}, {java}, {memory:.0f} GB RAM, {platform.system()}"


def rows_of(tables: Mapping[str, Any], title: str) -> list[Any]:
    """The rows of a kept table, each with the machine that it was measured on."""
    entry = tables.get(title, {"rows": []})
    of_table = entry.get("machine", "").split(", Python ")[0]
    return [{MACHINE: of_table, **row} for row in entry["rows"]]


class Results:
    """The folder of results; a table that is measured again replaces its older self, row by row."""

    def __init__(self, folder: Path) -> None:
        self._json = folder / "engine.json"
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self.tables: dict[str, Any] = json.loads(self._json.read_text())["tables"]
        except FileNotFoundError:
            self.tables = {}

    def rows(self, title: str) -> list[Row]:
        """The rows of a table that are there, each with the machine that it was measured on."""
        return rows_of(self.tables, title)

    def measured(self, table: Table, earlier: Sequence[Row] = ()) -> Table:
        """`table`, each of whose rows is kept behind `earlier` ones as soon as it is there."""
        kept: list[Row] = list(earlier)
        entry = {
            "machine": description(),
            "measured": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            # Says whether the machine was quiet: beyond a little, times show others' work too.
            "load_before": round(os.getloadavg()[0], 1),
            "line": table.line,
            "formats": dict(table.formats),
            "rows": kept,
        }

        def rows() -> Iterator[Row]:
            for row in table.rows:
                kept.append({**row, MACHINE: processor()})
                self.tables[table.title] = entry
                self._json.write_text(json.dumps({"tables": self._ordered()}, indent=1) + "\n")
                yield row

        return Table(table.title, table.line, table.formats, rows())

    def write(self) -> None:
        """The tables as Markdown, and the picture."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            print("# The engine\n")
            print(
                "Written by `make bench-engine`; how to read it is in [benchmarks](../README.md).\n"
            )
            for title, entry in self._ordered().items():
                show(Table(title, entry["line"], entry["formats"], entry["rows"]))
                load = entry["load_before"]
                print(f"{entry['measured']}, load {load} just before, on {entry['machine']}.\n")
            if "skew" in self.tables:
                print("![Batches by skew](engine.png)")
        (self._folder / "engine.md").write_text(text.getvalue())
        if "skew" in self.tables:
            _picture(self.tables["skew"]["rows"], self._folder / "engine.png")

    def _ordered(self) -> dict[str, Any]:
        return {name: self.tables[name] for name in ORDER if name in self.tables}


def _picture(rows: list[Mapping[str, Any]], path: Path) -> None:
    """The median batch of every grouping by skew, and its pairs a key."""
    import matplotlib as mpl  # noqa: PLC0415 - half a second, and optional

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    names = list(dict.fromkeys(row["grouping"] for row in rows))
    marks = "osv^<>DPX*hd8p"
    for name, mark in zip(names, marks, strict=False):
        own = sorted((row for row in rows if row["grouping"] == name), key=lambda row: row["z"])
        exponents = [row["z"] for row in own]
        thick = 3.0 if name == "level" else 1.2
        style: dict[str, Any] = {"marker": mark, "linewidth": thick, "label": name}
        axes[0].plot(exponents, [row["p50 s"] for row in own], **style)
        axes[1].plot(exponents, [row["pairs/key"] for row in own], **style)
    axes[0].set(xlabel="skew z", ylabel="seconds a batch, median", yscale="log")
    axes[1].set(xlabel="skew z", ylabel="(key, partition) pairs a key", yscale="log")
    axes[0].legend(fontsize=8, ncols=2)
    for axis in axes:
        axis.grid(visible=True, which="both", alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
