"""The engine's benchmark runs, at a size that shows nothing but that it does: no times here."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engine import __main__ as engine
from benchmarks.engine.instead import BY_HAND, WHOLE_JOBS
from benchmarks.engine.measure import Batch, Run, zipf
from benchmarks.engine.plain import SALTS, HashedPipeline
from benchmarks.engine.skew import QUICK, SLOTS
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
    tables = tables_of(tmp_path, "overhead", "aggregate", "source")

    assert [row["cell"] for row in tables["aggregate"]] == ["totals", "sketches"]
    assert all(row["none x"] > 0 and row["level x"] > 0 for row in tables["aggregate"])

    assert [row["pipeline"] for row in tables["overhead"]] == [
        "hash column",
        "partial_key",
        "level",
        "none",
        "groupBy by hand",
    ]
    assert all(row["cpu us"] > 0 and row["wall us"] > 0 for row in tables["overhead"])
    assert tables["overhead"][0]["x hash"] == 1.0
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
