"""Jobs that are killed, each time with another grouping and number of writers: every row is there
once. More: `python -m tests.support.running.killed_tables --rounds 50`.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.running.killed_tables import (
    BEGUN,
    FORMATS,
    LOGGED,
    WRITTEN,
    World,
    drawn_records,
    try_round,
)

Row = tuple[str | None, int]
PARQUET, DELTA = FORMATS[:2]


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("executors", [False, True], ids=["driver", "executors"])
def test_killed_jobs_leave_every_row_once(executors: bool) -> None:
    done = try_round(1, executors=executors)
    assert done.kills
    assert done.tables == {"parquet": 3, "delta": 3}
    assert (done.wrong, done.left) == ([], 0), done


def write_file(table: Path, key: str | None, rows: Iterable[Row], batch: int) -> str:
    name = f"country={key or '__HIVE_DEFAULT_PARTITION__'}/part-00000-{batch}.parquet"
    (table / name).parent.mkdir(parents=True, exist_ok=True)
    numbers = [number for country, number in rows if country == key]
    pq.write_table(pa.table({"number": pa.array(numbers, pa.int32())}), table / name)
    return name


def write_batch(home: Path, how: str, rows: list[Row], batch: int) -> None:
    """A batch as Spark's or Delta's sink leaves it."""
    table = home / "table"
    names = [write_file(table, key, rows, batch) for key in dict.fromkeys(key for key, _ in rows)]
    log = table / ("_spark_metadata" if how == PARQUET else "_delta_log")
    log.mkdir(exist_ok=True)
    if how == PARQUET:
        added = [{"path": f"file://{table}/{name}", "size": 1, "action": "add"} for name in names]
        (log / str(batch)).write_text("\n".join(["v1", *map(json.dumps, added)]))
    else:
        actions = [{"txn": {"appId": "q", "version": batch}}]
        actions += [{"add": {"path": name, "size": 1}} for name in names]
        (log / f"{batch:020}.json").write_text("\n".join(map(json.dumps, actions)))


def whole_world(folder: Path) -> World:
    """A round that has come to its end, without Spark."""
    world = World(folder, 7, None)
    outside = {}
    for job, home in enumerate(world.homes()):
        for number, batch in enumerate(drawn_records(7 * len(FORMATS) + job)):
            write_batch(home, FORMATS[job], batch, number)
        outside[home.name] = 0
    (folder / "outside.json").write_text(json.dumps(outside))
    return world


def test_tables_with_every_row_once_are_right(tmp_path: Path) -> None:
    world = whole_world(tmp_path)
    world.compare()
    assert (world.round.wrong, world.round.left) == ([], 0)
    assert world.round.tables == {PARQUET: 3, DELTA: 3}


@pytest.mark.parametrize("how", [PARQUET, DELTA])
@pytest.mark.parametrize("fault", ["a row too many", "a row too few", "a batch twice", "a key"])
def test_a_table_with_a_wrong_row_is_found(tmp_path: Path, how: str, fault: str) -> None:
    world = whole_world(tmp_path)
    job = FORMATS.index(how)
    home, batches = world.homes()[job], drawn_records(7 * len(FORMATS) + job)
    last = len(batches) - 1
    if fault == "a row too many":
        write_batch(home, how, [*batches[last], batches[last][0]], last)
    elif fault == "a row too few":
        write_batch(home, how, batches[last][1:], last)
    elif fault == "a batch twice":
        write_batch(home, how, batches[last], last + 1)
    else:
        (key, number), *rest = batches[last]
        write_batch(home, how, [(f"{key}2", number), *rest], last)
    world.compare()
    assert world.round.wrong == [home.name]


@pytest.mark.parametrize("how", [PARQUET, DELTA])
def test_a_file_that_no_cleaning_removed_is_counted(tmp_path: Path, how: str) -> None:
    world = whole_world(tmp_path)
    home = world.homes()[FORMATS.index(how)]
    write_file(home / "table", "c9", [("c9", 1)], 9)
    world.compare()
    # `unskew table clean` is part of the comparison, Delta's VACUUM needs a session.
    assert world.round.left == (how == DELTA)
    assert world.round.wrong == []


@pytest.mark.parametrize("how", [PARQUET, DELTA])
def test_how_far_a_batch_was_is_read_from_logs_and_files(tmp_path: Path, how: str) -> None:
    world = World(tmp_path, 7, None)
    home = world.homes()[FORMATS.index(how)]
    for log in ("offsets", "commits"):
        (home / "checkpoint" / log).mkdir(parents=True)
    (home / "checkpoint" / "metadata").write_text('{"id": "q"}')
    assert world.point_of(home, how) is None
    (home / "checkpoint" / "offsets" / "0").touch()
    assert world.point_of(home, how) == BEGUN
    rows: list[Row] = [("c0", 1)]
    write_file(home / "table", "c0", rows, 0)
    assert world.point_of(home, how) == WRITTEN
    write_batch(home, how, rows, 0)
    assert world.point_of(home, how) == LOGGED
    (home / "checkpoint" / "commits" / "0").touch()
    assert world.point_of(home, how) is None
