"""The engine's benchmark runs, at a size that shows nothing but that it does: no times here."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine import __main__ as engine
from benchmarks.engine import auto, source
from benchmarks.engine.instead import BY_HAND, WHOLE_JOBS
from benchmarks.engine.measure import Batch, Run, zipf
from benchmarks.engine.plain import SALTS, HashedPipeline
from benchmarks.engine.skew import QUICK, SLOTS
from unskew.grouping.choice.ways import WAYS
from unskew.jobs.query.pipeline import Pipeline


def tables_of(folder: Path, *names: str) -> dict[str, Any]:
    engine.main([*names, "--quick", "--out", str(folder)])
    written = json.loads((folder / "engine.json").read_text())["tables"]
    assert list(written) == list(names)
    for table in written.values():
        numbers = [v for row in table["rows"] for v in row.values() if isinstance(v, float)]
        assert all(map(math.isfinite, numbers))
    text = (folder / "engine.md").read_text()
    assert all(f"## {name}\n" in text for name in names)
    return {name: table["rows"] for name, table in written.items()}


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_overhead_aggregates_and_source_have_all_rows(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, "overhead", "aggregate", "source", "end")

    assert [row["cell"] for row in tables["aggregate"]] == ["totals", "sketches"]
    assert all(row["none x"] > 0 and row["level x"] > 0 for row in tables["aggregate"])

    assert [row["pipeline"] for row in tables["overhead"]] == [
        "hash column",
        "partial_key",
        "level",
        "local",
        "none",
        "groupBy by hand",
    ]
    assert all(row["cpu us"] > 0 and row["wall us"] > 0 for row in tables["overhead"])
    assert tables["overhead"][0]["x hash"] == 1.0
    waits = [(row["pipeline"], row["wait ms"]) for row in tables["end"]]
    assert waits == [
        (name, wait) for name in source.END_NAMES for wait in (source.KAFKAS_OWN_WAIT, "ours")
    ]
    split = {(row["split"], row["grouping"]): row for row in tables["source"]}
    assert set(split) == {(s, g) for s in ("on", "off") for g in ("level", "partial_key")}
    # Without the split there is one task a Kafka partition, and one of them has nearly all.
    assert split["off", "level"]["tasks"] == 4
    assert split["off", "level"]["max/mean"] > 2
    assert split["on", "level"]["tasks"] > 4
    assert split["on", "level"]["max/mean"] < 2


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_skew_and_its_rivals_have_all_rows(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, "skew", "instead", "time")

    rows = {(row["z"], row["grouping"]): row for row in tables["skew"]}
    assert list(rows) == [(z, name) for z in QUICK.exponents for name in QUICK.names]
    # Facts of the records, the same on any machine.
    assert rows[1.4, "level"]["max/mean"] == pytest.approx(1.0, abs=0.02)
    assert rows[1.4, "level"]["pairs/key"] < rows[1.4, "shuffle"]["pairs/key"]
    assert rows[1.4, "key"]["max/mean"] > 3
    assert rows[1.4, "key"]["pairs/key"] == 1.0
    assert [row["query"] for row in tables["instead"]] == [*WHOLE_JOBS, *BY_HAND]
    assert {row["case"] for row in tables["time"]} == {"dear keys", "slow partitions"}
    assert (tmp_path / "engine.png").stat().st_size > 10_000


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_auto_is_measured_beside_the_ways_that_it_takes(tmp_path: Path) -> None:
    (row,) = tables_of(tmp_path, "auto")["auto"]

    assert all(row[f"{way} s"] > 0 and len(row[f"{way} batches"]) == 3 for way in auto.WAYS)
    assert len(row["batches"]) == 7
    took = [part.split() for part in row["took"].split(", ")]
    assert sum(int(batches) for _, batches in took) == 7
    assert {way for way, _ in took} <= set(WAYS)
    assert row["changes"] == len(took) - 1


def kept(ways: str, seconds: list[float], between: float = 0.0) -> auto.KeptBatches:
    """Batches one after the other, with a pause where the way changes."""
    run = auto.KeptBatches()
    run.began, end = 0.0, 9.0
    for number, (way, each) in enumerate(zip(ways, seconds, strict=True)):
        pause = between if number and ways[number - 1] != way else 0.0
        end += pause + each
        run.seconds.append(each)
        run.ends.append(end)
        run.ways.append(way)
        run.change_seconds.append(pause)
    return run


def test_auto_is_behind_by_its_settled_batches_and_by_all_of_its_time() -> None:
    fixed = {"local": kept("lll", [9.0, 2.0, 2.0]), "level": kept("vvv", [7.0, 1.0, 1.0])}
    # A change after the second batch, and one after the fifth, whose first batch is not settled.
    taken = kept("llvvvlll", [5.0, 2.0, 1.5, 1.0, 1.0, 4.0, 2.0, 2.0], between=3.0)

    row = auto.describe_run(fixed, taken)

    assert (row["level s"], row["local s"], row["auto s"]) == (1.0, 2.0, 2.0)
    assert (row["x best"], row["changes"], row["changes s"]) == (2.0, 2, 6.0)
    assert row["x total"] == pytest.approx((2 + 1.5 + 1 + 1 + 4 + 2 + 2 + 6) / 7)
    assert row["x 100"] == pytest.approx((19.5 + 93 * 2.0) / 100)
    assert (row["first s"], row["took"]) == (14.0, "l 2, v 3, l 3")
    assert row["meets"] == "no: x best, x 100"


def test_auto_measures_any_cell_of_the_grid_that_is_named() -> None:
    rows = [{"cell": auto.CELLS[0].name}]

    assert auto.left_of(auto.Size(), rows, []).cells == auto.CELLS[1:]
    (cell,) = auto.left_of(auto.Size(), rows, ["z0-1us-0ms-0B-10000keys"]).cells
    assert cell not in auto.CELLS


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_cells_run_on_a_cluster_of_several_executors(tmp_path: Path) -> None:
    (row,) = tables_of(tmp_path, "cluster")["cluster"]

    assert all(row[f"{way} s"] > 0 and row[f"{way} merge"] > 0 for way in ("local", "level"))
    assert 0 <= row["stays"] <= 1


def test_only_whole_warm_batches_count() -> None:
    sizes = [100, 100, 98, 3, 0]
    ends = [5.0, 6.0, 8.0, 8.5, 9.0]
    batches = [
        Batch(number, size, 2.0, {}, end)
        for number, (size, end) in enumerate(zip(sizes, ends, strict=True))
    ]

    run = Run(batches)

    assert [batch.number for batch in run.warm] == [1, 2]
    assert run.records == 198
    assert run.cpu_seconds == 3.0
    assert run.records_per_second == 198 / 4


def test_zipf_has_the_share_of_its_law() -> None:
    ranks = zipf(100_000, 1.4, keys=1000)

    law = 1 / math.fsum(n**-1.4 for n in range(1, 1001))
    assert (ranks == 0).mean() == pytest.approx(law, rel=0.02)
    assert ranks.max() < 1000


def test_the_plain_hash_column_is_in_the_place_of_the_routing() -> None:
    (own,) = (name for name in vars(HashedPipeline) if not name.startswith("__"))
    assert own in vars(Pipeline)


def test_as_many_salts_as_slots() -> None:
    assert SALTS == SLOTS
