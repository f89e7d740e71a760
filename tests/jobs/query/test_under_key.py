"""What a batch would have been under `key` is what it is under `key`."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from unskew.config.loader import load_job
from unskew.jobs.engine.service import Service
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.batches.batch_stats import BatchStats
from unskew.jobs.observe.follower import Follower

pytestmark = pytest.mark.spark


class Batches(Follower):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.done: list[BatchDone] = []

    def on_batch_done(self, done: BatchDone) -> None:
        """A batch is done."""
        self.done.append(done)


def ran(spark: SparkSession, folder: Path, grouping: str) -> list[BatchStats]:
    """The stats of a job over the files in `folder`, two batches."""
    job = load_job(
        "word_count",
        {
            "name": f"under-{grouping.replace('_', '-')}",
            "source": {"type": "files", "path": str(folder / "in"), "files_per_batch": 1},
            "partitions": 5,
            "seed": 11,
            "grouping": {"type": grouping},
            "window": {"type": "none"},
            "lateness": None,
            "merge": {"partitions": 2, "output": "update"},
            "trigger": {"type": "available_now"},
            "sinks": [{"type": "memory", "table": f"under_{grouping}"}],
            "dead_letters": {"type": "files", "path": str(folder / "rejected")},
            "checkpoint": str(folder / "checkpoints" / grouping),
        },
    )
    batches = Batches()
    Service(job, spark, (batches,)).run()
    return [done.stats for done in batches.done if done.stats is not None]


@pytest.mark.slow
def test_every_grouping_knows_what_key_would_have_done(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        ranks = np.random.default_rng(number).zipf(1.4, size=(400, 5)) % 300
        lines = [b" ".join(b"w%d" % rank for rank in row) for row in ranks]
        lines[::50] = [b"\xff refused"] * len(lines[::50])
        (tmp_path / "in" / f"{number}.txt").write_bytes(b"\n".join(lines) + b"\n")
    by_key = ran(spark, tmp_path, "key")
    assert len(by_key) == 2
    for stats in by_key:
        assert stats.total == 5 * (400 - 8)
        assert stats.under_key.tolist() == stats.records.tolist()
        assert stats.under_key_max_over_mean > 1.3
    for grouping in ("level", "shuffle", "w_choices"):
        others = ran(spark, tmp_path, grouping)
        assert [each.total for each in others] == [each.total for each in by_key]
        for mine, theirs in zip(others, by_key, strict=True):
            assert mine.under_key.tolist() == theirs.records.tolist(), grouping
            assert mine.records.tolist() != theirs.records.tolist(), grouping
