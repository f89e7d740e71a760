import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import LATENCY_BOUNDS_SECONDS, PartitionReport
from unskew.grouping.spark.router import Router
from unskew.grouping.spark.routing_file import RoutingStats
from unskew.jobs.__main__ import main
from unskew.jobs.checkpoint.files import JOURNAL_FOLDER


def report(records: int, busy: float, keys: list[int], **more: object) -> PartitionReport:
    latencies = np.zeros(len(LATENCY_BOUNDS_SECONDS) + 1, np.int64)
    latencies[4] = records
    hashes = np.array(keys, np.uint64)
    return PartitionReport(
        records=records,
        keys=len(keys),
        busy_seconds=busy,
        state_bytes=100 * len(keys),
        latency_counts=latencies,
        latency_seconds=0.07 * records,
        heavy_hashes=hashes,
        heavy_records=np.full(len(keys), records // max(1, len(keys)), np.int64),
        home_partitions=np.array([1], np.int32),
        home_records=np.array([records]),
        heavy_names=tuple(more.get("names", ())),  # type: ignore[arg-type]
        sample_hashes=np.sort(hashes),
        rejected=more.get("rejected", {}),  # type: ignore[arg-type]
        executor="host/7",
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Two batches of three partitions under `level`, the second not published."""
    journal = Journal(str(tmp_path / "job" / JOURNAL_FOLDER))
    router = Router("level", 3, journal=journal)
    for batch in (4, 5):
        journal.write_state(batch, 0, router.restore_grouping(batch, 0).snapshot())
        journal.write_routing(batch, 0, RoutingStats(0.25))
        journal.write_report(batch, 0, report(60, 1.0, [1, 2], names=("a", "b")).to_snapshot(3))
        journal.write_report(batch, 1, report(20, 0.5, [2]).to_snapshot(3))
        rejected = {"not_utf8": 3} if batch == 5 else {}
        journal.write_report(batch, 2, report(10, 0.0, [3], rejected=rejected).to_snapshot(3))
    return tmp_path / "job"


def data(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["inspect", "--json", *words]) == 0
    shown: dict[str, object] = json.loads(capsys.readouterr().out)
    return shown


SECOND_BATCH = {
    "batch": 5,
    "records": 90,
    "max_over_mean": 2.0,
    "under_key_max_over_mean": 3.0,
    "busy_max_over_mean": 2.0,
    "busy_seconds": 1.5,
    "slowest_partition": 0,
    "slowest_busy_seconds": 1.0,
    "replication": 4 / 3,
    "sources": 1,
    "routing_seconds": 0.25,
    "state_keys": 4,
    "state_bytes": 400,
    "late_records": 0,
    "watermark": None,
    "watermark_behind_seconds": None,
    # Spark's own counts are not in this journal.
    "read_records": None,
    # The job has no `where`, no operator with `open`, and a single result.
    "filtered_records": None,
    "open_hits": None,
    "open_misses": None,
    "result_records": None,
    "result_filtered_records": None,
    "result_accounts": None,
    "open_seconds": None,
    # Its grouping is not `auto`.
    "taken": None,
    "taken_next": None,
    "taken_why": None,
    "expected_seconds": None,
    "expected_deviation_seconds": None,
    "change_seconds": None,
    # The job writes no table.
    "written_files": None,
    "written_bytes": None,
    "bytes_per_file": None,
    "dead_letters": {"not_utf8": 3},
    "dead_letters_published": False,
}
FIRST_PARTITION = {
    "partition": 0,
    "records": 120,
    "busy_seconds": 2.0,
    "latency_p99_seconds": 0.1,
    "last_batch": {
        "records": 60,
        "under_key_records": 0,
        "busy_seconds": 1.0,
        "state_keys": 2,
        "state_bytes": 200,
        "open_seconds": None,
        "written_files": None,
        "written_bytes": None,
        "executor": "host/7",
    },
}


def test_numbers_are_those_of_the_reports(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = data(capsys, str(checkpoint))
    assert shown["grouping"] == "level"
    assert shown["records"] == 180
    assert shown["max_over_mean"] == 2.0
    (first, second) = shown["batches"]  # type: ignore[misc]
    assert first["batch"] == 4
    assert second == SECOND_BATCH
    assert shown["partitions"][0] == FIRST_PARTITION  # type: ignore[index]
    hot = [(key["name"], key["records"]) for key in shown["hot_keys"]]  # type: ignore[attr-defined]
    assert hot == [("b", 100), ("a", 60), (None, 20)]
    journal = shown["journal"]
    assert journal["batches"] == 2  # type: ignore[index]
    sizes = [p.stat().st_size for p in (checkpoint / JOURNAL_FOLDER).rglob("*") if p.is_file()]
    assert journal["bytes"] == sum(sizes)  # type: ignore[index]


def test_only_the_newest_batches_if_asked(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data(capsys, str(checkpoint), "--batches", "1")["records"] == 90


def test_batches_from_before_a_change_of_partitions_are_left_out(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(str(checkpoint / JOURNAL_FOLDER))
    journal.write_report(6, 1, report(7, 0.1, [9]).to_snapshot(5))
    shown = data(capsys, str(checkpoint))
    assert [each["batch"] for each in shown["batches"]] == [6]  # type: ignore[attr-defined]
    assert len(shown["partitions"]) == 5  # type: ignore[arg-type]


def test_tables_hold_the_same(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(checkpoint)]) == 0
    shown = capsys.readouterr().out
    for text in ("level", "180 records in 2 batches", "not_utf8 3 (not sent yet)", "1.333", "█"):
        assert text in shown


def test_a_plot_is_a_png(checkpoint: Path, tmp_path: Path) -> None:
    picture = tmp_path / "balance.png"
    assert main(["inspect", str(checkpoint), "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("{tmp}/nothing",), 1, "inspect: {tmp}/nothing: is not there, or empty;"),
        (("{tmp}/plain",), 1, "inspect: {tmp}/plain: has nothing to show: no batch was routed"),
        (("{tmp}/other",), 1, "inspect: {tmp}/other: is not a job's checkpoint"),
        (("{tmp}/file",), 1, "inspect: {tmp}/file: "),
        (("{tmp}/job", "--plot", "{tmp}/no/a.png"), 1, "inspect: --plot {tmp}/no/a.png: No such"),
        (
            ("{tmp}/job", "--batches", "0"),
            2,
            "inspect: --batches: a whole number from 1 to ",
        ),
    ],
)
def test_what_is_wrong_is_one_line(
    checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    line: str,
) -> None:
    (tmp_path / "plain" / "offsets").mkdir(parents=True)
    (tmp_path / "other" / "files").mkdir(parents=True)
    (tmp_path / "file").write_text("x")
    assert main(["inspect", *(word.format(tmp=tmp_path) for word in words)]) == code
    error = capsys.readouterr().err
    assert error.startswith(line.format(tmp=tmp_path))
    assert error.count("\n") == 1


def test_a_damaged_journal_is_one_line(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = checkpoint / JOURNAL_FOLDER / "000000000005" / "partition-00001.report"
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    assert main(["inspect", str(checkpoint)]) == 1
    error = capsys.readouterr().err
    assert str(victim) in error
    assert "checksum" in error
    assert error.count("\n") == 1


def test_plot_without_matplotlib_says_what_to_install(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["inspect", str(checkpoint), "--plot", "a.png"]) == 1
    assert "install unskew[plot]" in capsys.readouterr().err


def test_a_batch_has_its_watermark_and_how_far_that_is_from_now(
    checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkpoint / "offsets").mkdir()
    ahead, beyond_all_years = (int(time.time()) + 7200) * 1000, 10**15
    for batch, watermark_ms in ((4, beyond_all_years), (5, ahead)):
        log = f'v1\n{{"batchWatermarkMs":{watermark_ms}}}\n{{}}'
        (checkpoint / "offsets" / str(batch)).write_text(log)
    (first, second) = data(capsys, str(checkpoint))["batches"]  # type: ignore[misc]
    assert (first["watermark"], first["watermark_behind_seconds"]) == (None, None)
    assert second["watermark"] == ahead / 1000
    assert second["watermark_behind_seconds"] == pytest.approx(-7200, abs=60)


@pytest.mark.parametrize(("watermark_ms", "late"), [(39, 1), (40, 8)])
def test_late_records_are_by_the_watermark_of_the_batch_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], watermark_ms: int, late: int
) -> None:
    journal = Journal(str(tmp_path / JOURNAL_FOLDER))
    ended = replace(
        report(10, 1.0, [1]),
        window_ends=np.array([20_000, 40_000, 60_000]),
        window_records=np.array([1, 7, 2]),
    )
    for batch in (0, 5, 6):
        journal.write_report(batch, 0, ended.to_snapshot(3))
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "4").write_text(f'v1\n{{"batchWatermarkMs":{watermark_ms}}}\n{{}}')
    shown = data(capsys, str(tmp_path))
    # None was late in the first batch; of the last one Spark's log is gone.
    assert [each["late_records"] for each in shown["batches"]] == [0, late, None]  # type: ignore[attr-defined]


def test_tables_are_as_wide_as_the_terminal_and_figures_whole(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")  # 80 columns, no colours
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["inspect", str(checkpoint)]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    headings = [line.split()[0] for line in lines if line.split() and line.split()[0].isalpha()]
    assert headings.count("batch") > 1
    assert max(map(len, lines)) <= 80
    assert any("1.333" in line.split() for line in lines)
