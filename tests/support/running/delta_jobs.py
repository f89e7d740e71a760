"""Jobs that write Delta tables, in a session of their own: prints what the tables have, as JSON."""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.jobs.commands.test_examples import example
from tests.storm.faults.outages import NotPossibleHereError, fill, small_disk
from tests.support.running.disks import read_only
from tests.support.running.in_process import Ran, write_lines
from unskew.config.errors import ExternalError
from unskew.jobs.engine.session import session
from unskew.jobs.sinks.tables.table import DELTA_SETTINGS

ROWS: dict[str, Any] = {
    "event_time": "timestamp",
    "window": {"type": "none"},
    "lateness": None,
    "merge": {"partitions": 4, "output": "update"},
    "decode": {"type": "json", "schema": "country STRING, amount INT"},
    "operator": {"type": "rows"},
}
COUNTS = {
    **ROWS,
    "operator": {"type": "word_count", "text": "country"},
    "merge": {"partitions": 2, "output": "update"},
}
MERGED: dict[str, dict[str, Any]] = {
    "vwap": {"type": "vwap", "symbol": "country", "price": "amount + 1", "volume": "amount + 1"},
    "aggregate": {
        "type": "aggregate",
        "key": "country",
        "columns": {"n": "count(*)", "total": "sum(amount)", "top": "max(amount)"},
    },
    "hashtags": {
        "type": "hashtags",
        "hashtags": "array(country, 'all', country)",
        "user": "amount % 4",
    },
}
"""Other operators whose results are merged."""
SEVERAL = {
    **COUNTS,
    "operator": {
        "type": "results",
        "results": [
            {"name": "by_country", "key": "country", "columns": {"n": "count(*)"}},
            {"name": "by_parity", "key": "amount % 2", "columns": {"total": "sum(amount)"}},
        ],
    },
}
CLOSED = {
    **COUNTS,
    "event_time": "to_timestamp(amount)",
    "window": {"type": "tumbling", "duration": "10 s"},
    "lateness": "0 s",
    "merge": {"partitions": 2, "output": "append"},
}


def table(path: Path, **more: Any) -> dict[str, Any]:
    """Make a Delta sink."""
    return {"type": "table", "format": "delta", "path": str(path), **more}


def repeat_last_batch(job_folder: Path, name: str) -> None:
    """Leave a checkpoint as a crash after the sink and before the commit leaves it."""
    commits = job_folder / "checkpoints" / name / "commits"
    newest = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
    (commits / str(newest)).unlink()
    (commits / f".{newest}.crc").unlink(missing_ok=True)


def read(spark: SparkSession, path: Path) -> list[list[Any]]:
    """A table's rows, in order."""
    rows = spark.read.format("delta").load(str(path)).collect()
    return sorted([[str(value) for value in row] for row in rows])


def run(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run the jobs; what the tables have, and what was refused."""
    write_lines(folder / "in", "0.json", [{"country": f"c{n % 3}", "amount": n} for n in range(9)])
    write_lines(folder / "in", "1.json", [{"country": "c0", "amount": 100}, {"amount": 200}])
    shown: dict[str, Any] = {}

    rows = table(folder / "rows", partition_by=["country"])
    first = Ran(spark, folder, "rows", sinks=[rows], **ROWS)
    shown["rows"] = read(spark, folder / "rows")
    shown["files"] = [int(done.written.files.sum()) for done in first.batches if done.written]
    repeat_last_batch(folder, "rows")
    Ran(spark, folder, "rows", sinks=[rows], grouping={"type": "key"}, **ROWS)
    shown["rows after a repeated batch"] = read(spark, folder / "rows")
    Ran(spark, folder, "fresh", sinks=[rows], **ROWS)
    shown["rows of two checkpoints"] = len(read(spark, folder / "rows"))
    try:
        changed = {"operator": {"type": "rows", "columns": {"country": "country", "a": "amount"}}}
        Ran(spark, folder, "other", sinks=[rows], **{**ROWS, **changed})
    except ExternalError as error:
        shown["refused"] = [line.partition(": ")[2] for line in str(error).splitlines()]
    Ran(spark, folder, "rows2", sinks=[{**rows, "schema_changes": "merge"}], **{**ROWS, **changed})
    shown["rows with a new column"] = len(
        spark.read.format("delta").load(str(folder / "rows")).where("a IS NOT NULL").collect()
    )

    counts = table(folder / "counts")
    Ran(spark, folder, "counts", sinks=[counts], **COUNTS)
    repeat_last_batch(folder, "counts")
    Ran(spark, folder, "counts", sinks=[counts], **COUNTS)
    shown["counts"] = read(spark, folder / "counts")

    for name, operator in MERGED.items():
        for _ in range(2):
            changes = {**COUNTS, "operator": operator, "sinks": [table(folder / name)]}
            Ran(spark, folder, name, **changes)
            shown[name] = read(spark, folder / name)
            repeat_last_batch(folder, name)

    shown |= merge_several(spark, folder) | merge_another_column(spark, folder)

    both = [
        table(folder / "closed", partition_by=["date(window_start) AS day"]),
        {"type": "console"},
    ]
    Ran(spark, folder, "closed", sinks=both, **CLOSED)
    repeat_last_batch(folder, "closed")
    Ran(spark, folder, "closed", sinks=both, **CLOSED)
    shown["closed"] = read(spark, folder / "closed")
    return shown


def merge_several(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The tables of two results of one job, of which a batch ran twice."""
    names = ("by_country", "by_parity")
    for _ in range(2):
        sinks = [table(folder / name, result=name) for name in names]
        Ran(spark, folder, "several", **{**SEVERAL, "sinks": sinks})
        shown = {name: read(spark, folder / name) for name in names}
        repeat_last_batch(folder, "several")
    return shown


def merge_another_column(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What a job is told, and does, whose results have one column more than the table, or less."""
    narrow, shown = MERGED["aggregate"], {}
    wide = {**narrow, "columns": {**narrow["columns"], "least": "min(amount)"}}
    asked = ("refuse", wide), ("merge", wide), ("refuse", narrow), ("merge", narrow)
    for number, (changes, operator) in enumerate(asked):
        sinks = [table(folder / "aggregate", schema_changes=changes)]
        if operator is narrow:  # a total that the wide job did not see
            write_lines(folder / "in", "2.json", [{"country": "c9", "amount": 1}])
        try:
            Ran(spark, folder, f"wide{number}", **{**COUNTS, "operator": operator, "sinks": sinks})
        except ExternalError as error:
            shown[f"evolved {number}"] = [str(error).partition(": ")[2]]
        else:
            shown[f"evolved {number}"] = read(spark, folder / "aggregate")
    (folder / "in" / "2.json").unlink()
    return shown


def run_example(spark: SparkSession, folder: Path) -> list[list[int]]:
    """Rows and files of the tables of docs/examples, in a batch and in a stream."""
    shown = example(Path(__file__).resolve().parents[3], "route_before_a_table")
    shown.write_events(folder / "events")
    events = spark.read.schema(shown.EVENTS).json(str(folder / "events"))
    shown.write_batch(events, folder / "batch", "delta")
    arriving = spark.readStream.schema(shown.EVENTS).option("maxFilesPerTrigger", 1)
    stream = arriving.json(str(folder / "events"))
    shown.write_stream(stream, folder / "stream", folder / "streams", "delta")
    tables = (folder / "batch", folder / "stream")
    return [[len(read(spark, table)), shown.files(table)] for table in tables]


def run_on_small_disk(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The lines of jobs whose table's disk is full, then read-only, and the rows in the end."""
    disk = folder / "table"

    def run_batch(number: int) -> list[str]:
        lines = [{"country": f"c{row % 3}", "amount": 100 * number + row} for row in range(30)]
        write_lines(folder / "in", f"{number}.json", lines)
        sinks = [table(disk, partition_by=["country"])]
        try:
            Ran(spark, folder, "disk", sinks=sinks, **ROWS)
        except ExternalError as error:
            return str(error).splitlines()
        return []

    with small_disk(disk):
        shown = {"before": run_batch(0)}
        fill(disk / "_filler", 4000)
        shown["full"] = run_batch(1)
        (disk / "_filler").unlink()
        shown["room"] = run_batch(1)
        with read_only(disk):
            shown["read-only"] = run_batch(2)
        shown["after"] = run_batch(2)
        amounts = sorted(int(row[1]) for row in read(spark, disk))
        return {**shown, "amounts": amounts}


def main(folder: str) -> None:
    """Run them in a session with Delta's jars."""
    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        **DELTA_SETTINGS,
    }
    with session("delta", settings, ["delta"]) as spark:
        shown = run(spark, Path(folder))
        (Path(folder) / "example").mkdir()
        shown["example"] = run_example(spark, Path(folder) / "example")
        with suppress(NotPossibleHereError):
            shown["disk"] = run_on_small_disk(spark, Path(folder) / "disk")
    Path(folder, "shown.json").write_text(json.dumps(shown))


if __name__ == "__main__":
    main(sys.argv[1])
