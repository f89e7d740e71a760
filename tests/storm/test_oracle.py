"""The parts of the storm: worlds, oracle, ledger; facts worked out by hand or elsewhere."""

import itertools
import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.storm import ledger
from tests.storm.__main__ import plan, take_turns
from tests.storm.cases import QUICK
from tests.storm.faults.damage import damage_one, lose_newest
from tests.storm.faults.flip import kind_of
from tests.storm.faults.reads import read_damaged
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.points import Checkpoint
from tests.storm.oracle.expected import Outcome, count_rows, estimated_users, expected
from tests.storm.oracle.outcome import differences, totals_of
from tests.storm.oracle.records import START, Record, batches_of
from tests.storm.oracle.tables import lake_rows
from tests.storm.oracle.world import KEYS, OPERATORS, WINDOWS, World, routing_of, world_of
from tests.storm.oracle.xxhash import xxhash64
from unskew.config.models.grouping import GROUPING_MODELS
from unskew.grouping.registry import create
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.rejected_file import COLUMNS


def record(seconds: float, text: str, offset: int = 0) -> Record:
    at = f"2026-03-01T12:{int(seconds) // 60:02d}:{seconds % 60:06.3f}Z"
    return Record(b"", 0, offset, "", {"at": at, "text": text})


def small(**fixed: Any) -> World:
    return world_of(1, operator="word_count", source="files", sink="kafka", **fixed)


def test_a_seed_gives_the_same_world_and_records_always() -> None:
    assert world_of(5) == world_of(5)
    assert batches_of(world_of(5)) == batches_of(world_of(5))
    assert routing_of(world_of(5), random.Random(1)) == routing_of(world_of(5), random.Random(1))


def test_worlds_vary_in_all_that_a_job_can_be() -> None:
    worlds = [world_of(seed) for seed in range(300)]
    assert {world.operator for world in worlds} == set(OPERATORS)
    assert {world.window for world in worlds} == set(WINDOWS)
    assert {world.keys for world in worlds} == set(KEYS)
    assert {world.sink for world in worlds} == {"files", "kafka", "postgres", "table"}
    assert {(world.operator == "rows", world.table_format) for world in worlds} == {
        (rows, how) for rows in (True, False) for how in ("parquet", "delta")
    }
    assert {world.sink for world in worlds if world.second_sink} == {"files", "kafka", "postgres"}
    assert {(world.native, world.output) for world in worlds} == {
        (native, output) for native in (True, False) for output in ("append", "update")
    }


def test_rows_go_into_tables_alone_and_other_sinks_that_are_asked_for_get_totals() -> None:
    drawn = [world_of(seed) for seed in range(300)]
    rows = [world for world in drawn if world.operator == "rows"]
    assert {(world.sink, world.window) for world in rows} == {("table", "none")}
    asked = [world_of(world.seed, sink="files") for world in rows]
    assert "rows" not in {world.operator for world in asked}


def test_every_way_of_routing_is_drawn_that_the_operator_can_have() -> None:
    rng = random.Random(1)
    routed = replace(world_of(1), native=False)
    groupings = {
        operator: {routing_of(replace(routed, operator=operator), rng).grouping for _ in range(500)}
        for operator in ("word_count", "rows")
    }
    assert groupings["word_count"] == GROUPING_MODELS.keys() - {"none"}
    assert groupings["rows"] == groupings["word_count"] - {"auto", "fish", "posg"}


def test_spark_s_own_hashes_of_short_and_long_texts() -> None:
    # Taken from `SELECT xxhash64('Spark'), xxhash64(repeat('a', 40))` of Spark 4.2.
    assert (xxhash64(b"Spark"), xxhash64(b"a" * 40)) == (-4294468057691064905, -8273737738657618755)


def test_few_users_are_counted_exactly() -> None:
    assert estimated_users(f"u{number}" for number in range(200)) == 200


def test_words_are_counted_by_window_and_late_ones_dropped() -> None:
    world = small(window="tumbling", output="update", lateness_seconds=20)
    batches = [[record(30, "a a")], [record(65, "a")], [record(1, "a b"), record(41, "b")]]
    base = int(START.timestamp()) * 1000

    totals = expected(world, batches).totals

    # When the third batch runs, late is what ended by 12:00:10: the watermark of the second one.
    assert totals == {
        (base, base + 20_000, "a"): {"count": 1},
        (base, base + 20_000, "b"): {"count": 1},
        (base + 20_000, base + 40_000, "a"): {"count": 2},
        (base + 40_000, base + 60_000, "b"): {"count": 1},
        (base + 60_000, base + 80_000, "a"): {"count": 1},
    }
    # A batch later it is what ended by 12:00:45.
    later = expected(world, [*batches, [record(1, "c"), record(41, "c")]]).totals
    assert later.keys() - totals.keys() == {(base + 40_000, base + 60_000, "c")}


def test_a_batch_that_a_table_had_already_moves_no_watermark() -> None:
    world = small(window="tumbling", output="update", lateness_seconds=20)
    batches = [[record(30, "a")], [record(65, "a")], [record(41, "b")], [record(1, "c")]]
    for skipped, counted in (({1}, 1), (set(), 0), ({2}, 0)):
        totals = expected(world, batches, skipped).totals
        assert sum(result_key[2] == "c" for result_key in totals) == counted


def test_in_append_mode_only_closed_windows_are_written() -> None:
    world = small(window="tumbling", output="append", lateness_seconds=20)
    totals = expected(world, [[record(5, "a")], [record(45, "b")]]).totals
    assert [result_key[2] for result_key in totals] == ["a"]


def test_a_lost_a_wrong_and_a_repeated_row_are_told() -> None:
    want = Outcome({("a",): {"count": 1}, ("b",): {"count": 2}}, Counter({(0, 1, "not_utf8"): 1}))

    assert differences(want, want, letters_once=True) == []
    lost = Outcome({("a",): {"count": 1}}, want.dead_letters)
    assert differences(want, lost, letters_once=True) == [
        "1 totals missing, such as ('b',): {'count': 2}"
    ]
    twice = totals_of([{"key": "a", "count": 1}] * 2, once=True)
    assert "more than once" in str(differences(want, Outcome(twice), letters_once=True))
    dead_letters = Outcome(want.totals, Counter({(0, 1, "not_utf8"): 2}))
    assert len(differences(want, dead_letters, letters_once=True)) == 1
    assert differences(want, dead_letters, letters_once=False) == []


def test_rows_are_those_records_that_are_wanted_and_each_is_there_once() -> None:
    world = world_of(1, operator="rows", sink="table")
    fields = {"symbol": "k17", "price": "1.5000", "volume": 8, "at": "2026-03-01T12:00:00.250Z"}
    records = [
        Record(b"", 0, 4, "", fields),
        Record(b"", 1, 0, "", {**fields, "volume": 14}),
        Record(None, 1, 1, "no_value", {}),
        Record(b"", 1, 2, "partition_value_unusable", {**fields, "volume": 14}),
    ]
    outcome = expected(world, [records[:1], records[1:]])
    at = int(START.timestamp()) * 1000 + 250
    row = {"symbol": "k17", "price": Decimal("1.5"), "volume": 8, "at": at, "kafka_partition": 0}
    row |= {"kafka_offset": 4, "kind": "k1", "day": "2026-03-01"}
    assert outcome.totals == count_rows([row])
    assert outcome.dead_letters == {(1, 1, "no_value"): 1}
    assert len(differences(outcome, Outcome(count_rows([row] * 2)), letters_once=True)) == 2


def test_a_table_has_what_its_log_says(tmp_path: Path) -> None:
    spark, delta = tmp_path / "spark", tmp_path / "delta"

    def write(path: Path, *numbers: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"number": list(numbers)}), path)

    for table in (spark, delta):
        write(table / "kind=a%2Fb" / "part-0.parquet", 1, 2)
        write(table / "kind=__HIVE_DEFAULT_PARTITION__" / "part-1.parquet", 3)
        write(table / "kind=c" / "part-2.parquet", 4)
    uri = f"file://{tmp_path.as_posix()}-before/spark"
    first = {"action": "add", "path": f"{uri}/kind=a%252Fb/part-0.parquet"}
    second = {"action": "add", "path": f"{uri}/kind=__HIVE_DEFAULT_PARTITION__/part-1.parquet"}
    _write_log(spark / "_spark_metadata" / "9.compact", "v1", first)
    _write_log(spark / "_spark_metadata" / "10", "v1", second)
    _write_log(spark / "_spark_metadata" / ".10.crc", "not an entry")
    version = delta / "_delta_log" / "00000000000000000000.json"
    added = {"add": {"path": "kind=a%252Fb/part-0.parquet"}}
    _write_log(version, {"commitInfo": {}}, added, {"add": {"path": "kind=c/part-2.parquet"}})
    _write_log(
        version.with_name("00000000000000000001.json"),
        {"remove": {"path": "kind=c/part-2.parquet"}},
        {"add": {"path": "kind=__HIVE_DEFAULT_PARTITION__/part-1.parquet"}},
    )

    rows = [{"number": 1, "kind": "a/b"}, {"number": 2, "kind": "a/b"}, {"number": 3, "kind": None}]
    for table in (spark, delta):
        assert sorted(lake_rows(table), key=lambda row: int(row["number"])) == rows


def _write_log(path: Path, *lines: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts))


def test_the_point_of_a_batch_of_rows_is_read_from_reports_and_the_table_s_log(
    tmp_path: Path,
) -> None:
    world = world_of(1, operator="rows", sink="table", native=False)
    routing = replace(routing_of(world, random.Random(1)), partitions=1)
    checkpoint = Checkpoint(tmp_path, world, routing, tmp_path / "results")
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").touch()
    Journal(str(tmp_path / "unskew")).write_report(0, 0, create("key", partitions=2).snapshot())
    reported = checkpoint.position().point
    (tmp_path / "results" / "_spark_metadata").mkdir(parents=True)
    (tmp_path / "results" / "_spark_metadata" / "0").touch()
    assert (reported, checkpoint.position().point) == ("reported", "results written")


def test_a_batch_s_point_is_read_from_the_files(tmp_path: Path) -> None:
    world = small(window="none", merge_partitions=2)
    routing = routing_of(world, random.Random(1))
    checkpoint = Checkpoint(tmp_path, world, routing)
    seen = [checkpoint.position().point]
    journal = Journal(str(tmp_path / "unskew"))
    state = create("key", partitions=2).snapshot()

    def point(path: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
        seen.append(checkpoint.position().point)

    point("offsets/0")
    journal.write_state(0, 0, state)
    seen.append(checkpoint.position().point)
    for partition in range(routing.partitions):
        journal.write_report(0, partition, state)
        seen.append(checkpoint.position().point)
    point("state/0/0/1.changelog")
    point("state/0/1/1_a-b.changelog")
    point("commits/0")

    reported = ["reported"] * (routing.partitions - 1)
    assert seen == [
        "before the offset log",
        "offsets logged",
        "routed",
        *reported,
        "in the merge",
        "in the merge",
        "merge state committed",
        "before the offset log",
    ]
    assert checkpoint.position().batch == 1


def test_every_damaged_snapshot_is_noticed(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "unskew"))
    journal.write_state(0, 0, create("level", partitions=3).snapshot())
    counts = Counts()
    read_damaged(tmp_path / "unskew", random.Random(4), counts, flips=300)
    assert counts.outcomes == {"damage noticed by its reader": 300}


def test_every_damaged_file_of_rejected_records_is_noticed(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "unskew"))
    journal.write_rejected(0, 0, pa.table({name: ["not_utf8"] for name in COLUMNS}))
    whole = [path.read_bytes() for path in sorted(tmp_path.rglob("*.rejected"))]
    counts = Counts()
    read_damaged(tmp_path / "unskew", random.Random(4), counts, flips=200)
    assert counts.outcomes == {"damage noticed by its reader": 200}
    assert [path.read_bytes() for path in sorted(tmp_path.rglob("*.rejected"))] == whole


def test_a_reader_that_checks_nothing_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.grouping.snapshot.digest_of", lambda _: bytes(16))
    journal = Journal(str(tmp_path / "unskew"))
    journal.write_state(0, 0, create("level", partitions=3).snapshot())
    with pytest.raises(StormError, match="it reads as another"):
        read_damaged(tmp_path / "unskew", random.Random(4), Counts(), flips=300)


def test_a_power_cut_takes_only_the_newest_files(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}").write_text("x" * 10)
    rng = random.Random(3)
    harm = lose_newest(tmp_path, rng)
    assert 1 <= len(harm.split(", ")) <= 12
    untouched = [path for path in tmp_path.iterdir() if path.read_text() == "x" * 10]
    assert 28 <= len(untouched) < 40


def test_every_kind_gets_each_seed_then_the_next_ones() -> None:
    assert list(itertools.islice(plan(("flips", "power"), (1, 50)), 6)) == [
        ("flips", 1),
        ("flips", 50),
        ("power", 1),
        ("power", 50),
        ("flips", 2),
        ("flips", 51),
    ]


def test_a_storm_of_every_day_begins_with_another_kind() -> None:
    days = range(20261119, 20261126)
    assert {take_turns(QUICK, day)[0] for day in days} == set(QUICK)
    assert all(sorted(take_turns(QUICK, day)) == sorted(QUICK) for day in days)


def test_every_kind_of_file_is_damaged_in_turn(tmp_path: Path) -> None:
    for name in ("offsets/0", "offsets/1", "state/0/0/1.changelog", "state/0/0/2.zip", "metadata"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("content")
    rng = random.Random(1)
    kinds = [damage_one(tmp_path, rng, number)[0] for number in range(5, 9)]
    assert sorted(kinds) == ["metadata metadata", "offsets", "state changelog", "state zip"]


def test_files_are_told_apart_by_what_they_are_for() -> None:
    assert kind_of(Path("offsets/3")) == "offsets"
    assert kind_of(Path("offsets/.3.crc")) == "checksum of offsets"
    assert kind_of(Path("state/0/1/3.changelog")) == "state changelog"
    assert kind_of(Path("unskew.json")) == "unskew.json json"


def test_the_ledger_sums_by_commit(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    counts = Counts(faults=Counter({"JVM killed": 2, "power cut": 1}))
    ledger.record(counts, "from 1", [], "abc", file)
    ledger.record(counts, "from 1", ["python -m tests.storm --seed 5"], "abc", file)
    first, second = ledger.record(counts, "from 9", [], "def", file)
    assert (first.cases, len(first.failed), first.seeds) == (2, 1, ["from 1"])
    assert (first.faults, second.faults) == ({"JVM killed": 4, "power cut": 2}, counts.faults)
    assert "| driver or JVM kills | 6 | 300 |" in ledger.page([first, second])


def test_two_storms_at_once_lose_no_count(tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    counts = Counts(faults=Counter({"JVM killed": 1}))
    with ThreadPoolExecutor(8) as storms:
        list(storms.map(lambda _: ledger.record(counts, "from 1", [], "abc", file), range(64)))
    assert ledger.read(file)[0].faults == {"JVM killed": 64}


def test_the_page_is_the_ledger_s() -> None:
    assert ledger.PAGE.read_text() == ledger.page(ledger.read())
