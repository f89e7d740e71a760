"""Hot keys as metrics: hashes or names, and never more series than a bound."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support.batches import done
from tests.support.displays.boards import board, samples
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.checkpoint.hash_key import make_hash_key, read_hash_key
from unskew.jobs.observe.batches.batch_stats import HotKey, read_batch_stats
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.figure import OTHERS
from unskew.jobs.observe.figures import HOT_KEY_SERIES_MAX


def test_hot_keys_are_hashes_unless_the_job_shows_names() -> None:
    hashed, named, few, none = board(), board(), board(1), board(0)
    for shown, names in ((hashed, False), (named, True), (few, False), (none, False)):
        shown.on_batch_done(done(0, names))

    def keys(of: Board) -> list[str]:
        return [
            dict(labels)["key"] for name, labels in samples(of) if name == "unskew_hot_key_records"
        ]

    assert keys(hashed) == ["ffffffffffffffff", "0000000000000005"]
    assert keys(named) == ["x" * 80 + "...", "b"]
    assert keys(few) == ["ffffffffffffffff"]
    assert keys(none) == []


def test_keys_that_come_and_go_make_a_bounded_number_of_series() -> None:
    shown, keys = board(), set()
    for number in range(150):
        hot = tuple(HotKey(10 * number + key, None, 1) for key in range(10))
        batch = done(number)
        assert batch.stats is not None
        shown.on_batch_done(replace(batch, stats=replace(batch.stats, hot_keys=hot)))
        now = {
            dict(labels)["key"]: records
            for (name, labels), records in samples(shown).items()
            if name == "unskew_hot_key_records"
        }
        assert sum(now.values()) == 10
        keys |= now.keys()
    assert len(keys) == HOT_KEY_SERIES_MAX + 1
    assert now == {OTHERS: 10}


def test_hashes_of_hot_keys_are_made_with_the_checkpoints_secret(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "unskew"))
    heavy = np.array([7], np.uint64)
    report = PartitionReport(
        records=3, busy_seconds=1.0, heavy_hashes=heavy, heavy_records=np.array([3])
    )
    journal.write_report(0, 0, report.to_snapshot(1))
    (tmp_path / "other").mkdir()
    umask = os.umask(0)
    try:
        key = make_hash_key(str(tmp_path))
    finally:
        os.umask(umask)
    assert (tmp_path / "unskew.key").stat().st_mode & 0o777 == 0o600
    assert make_hash_key(str(tmp_path)) == read_hash_key(str(tmp_path)) == key
    raw = read_batch_stats(str(tmp_path / "none"), journal, 0)
    shown = [read_batch_stats(str(tmp_path), journal, 0) for _ in range(2)]
    make_hash_key(f"file:{tmp_path}/other")
    shown.append(read_batch_stats(str(tmp_path / "other"), journal, 0))
    hashes = [stats.hot_keys[0].hash for stats in (raw, *shown) if stats is not None]
    assert hashes[0] == 7
    assert hashes[1] == hashes[2]
    assert len(set(hashes)) == 3
    (tmp_path / "unskew.key").write_text("cut")
    assert make_hash_key(str(tmp_path)) != key


def test_a_key_that_left_the_hot_ones_is_no_longer_shown() -> None:
    shown = board()
    shown.on_batch_done(done(0, names=True))
    shown.on_batch_done(done(1))
    assert ("unskew_hot_key_records", (("key", "b"),)) not in samples(shown)
