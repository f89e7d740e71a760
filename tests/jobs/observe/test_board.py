"""What Prometheus reads of a query: which metrics there are, and their values."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from docs.reference.metrics import PAGE, main, page
from tests.support.batches import done, progress
from tests.support.displays.boards import board, samples
from unskew import __version__
from unskew.grouping.choice.decider import Expected
from unskew.grouping.choice.records import BatchChoice
from unskew.grouping.choice.ways import WAYS
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import PartitionReport
from unskew.grouping.spark.router import Router
from unskew.grouping.spark.routing_file import RoutingStats
from unskew.jobs.observe.batches.batch import BatchDone, compute_lag, read_routing
from unskew.jobs.observe.batches.batch_stats import read_batch_stats
from unskew.jobs.observe.batches.written import WrittenFiles, read_written_files
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.figures import METRICS
from unskew.jobs.observe.health import Health
from unskew.jobs.operators.base import FILTERED_BY_RESULT, OBSERVED

EXPORTED = {
    "unskew_build_info": ("gauge", "version"),
    "unskew_query_info": ("gauge", "grouping", "operator"),
    "unskew_query_up": ("gauge",),
    "unskew_query_state": ("gauge", "state"),
    "unskew_query_start_timestamp_seconds": ("gauge",),
    "unskew_trigger_interval_seconds": ("gauge",),
    "unskew_last_batch_timestamp_seconds": ("gauge",),
    "unskew_last_batch_number": ("gauge",),
    "unskew_partitions": ("gauge",),
    "unskew_batches_total": ("counter",),
    "unskew_batch_seconds": ("histogram",),
    "unskew_batch_part_seconds": ("gauge", "part"),
    "unskew_source_records_total": ("counter",),
    "unskew_filtered_records_total": ("counter",),
    "unskew_batch_filtered_records": ("gauge",),
    "unskew_result_records_total": ("counter", "result"),
    "unskew_result_filtered_records_total": ("counter", "result"),
    "unskew_result_late_records_total": ("counter", "result"),
    "unskew_result_rejected_records_total": ("counter", "result"),
    "unskew_open_hits_total": ("counter",),
    "unskew_open_misses_total": ("counter",),
    "unskew_open_seconds_total": ("counter",),
    "unskew_batch_source_records": ("gauge",),
    "unskew_records_total": ("counter",),
    "unskew_batch_records": ("gauge",),
    "unskew_partition_records_total": ("counter", "partition"),
    "unskew_partition_batch_records": ("gauge", "partition"),
    "unskew_partition_batch_under_key_records": ("gauge", "partition"),
    "unskew_partition_busy_seconds_total": ("counter", "partition"),
    "unskew_partition_batch_busy_seconds": ("gauge", "partition"),
    "unskew_partition_batch_open_seconds": ("gauge",),  # no value: nothing was opened
    "unskew_partition_latency_seconds": ("histogram", "partition"),
    "unskew_partition_state_keys": ("gauge", "partition"),
    "unskew_partition_state_bytes": ("gauge", "partition"),
    "unskew_max_over_mean_ratio": ("gauge",),
    "unskew_under_key_max_over_mean_ratio": ("gauge",),
    "unskew_busy_max_over_mean_ratio": ("gauge",),
    "unskew_replication_ratio": ("gauge",),
    "unskew_hot_keys": ("gauge",),
    "unskew_hot_key_records": ("gauge", "key"),
    "unskew_sources": ("gauge",),
    "unskew_routing_seconds_total": ("counter",),
    "unskew_batch_routing_seconds": ("gauge",),
    "unskew_grouping_signal": ("gauge", "over_sources", "signal"),
    "unskew_grouping_taken": ("gauge", "way"),
    "unskew_expected_batch_seconds": ("gauge", "way"),
    "unskew_expected_batch_deviation_seconds": ("gauge", "way"),
    "unskew_grouping_changes_total": ("counter",),
    "unskew_grouping_change_seconds_total": ("counter",),
    "unskew_grouping_change_discarded_records_total": ("counter",),
    "unskew_late_partials_total": ("counter",),
    "unskew_late_records_total": ("counter",),
    "unskew_watermark_timestamp_seconds": ("gauge",),
    "unskew_dead_letters_total": ("counter", "reason"),
    "unskew_written_files_total": ("counter",),
    "unskew_batch_written_files": ("gauge",),
    "unskew_batch_written_bytes": ("gauge",),
    "unskew_bytes_per_written_file": ("gauge",),
    "unskew_partition_batch_written_files": ("gauge", "partition"),
    "unskew_partition_batch_written_bytes": ("gauge", "partition"),
    "unskew_kafka_lag_records": ("gauge", "kafka_partition", "topic"),
    "unskew_merge_state_rows": ("gauge",),
    "unskew_merge_state_bytes": ("gauge",),
    "unskew_merge_partition_state_rows": ("gauge", "merge_partition"),
    "unskew_merge_partition_state_bytes": ("gauge", "merge_partition"),
    "unskew_journal_bytes": ("gauge",),
    "unskew_journal_batches": ("gauge",),
    "unskew_journal_unreadable_files": ("gauge",),
}


WRITTEN = WrittenFiles(np.array([3, 1]), np.array([300, 200]), np.array([0.5, 0.25]))


def test_exactly_these_metrics_are_exported_with_these_labels() -> None:
    full, first = board(), done(0)
    assert first.stats is not None
    observed = {OBSERVED: {f"{FILTERED_BY_RESULT}totals": 1}}
    first = replace(
        first,
        progress={**first.progress, "observedMetrics": observed},
        stats=replace(
            first.stats,
            results={"totals": 3},
            result_rejected={"totals": 1},
            result_late={"totals": 1},
        ),
        written=WRITTEN,
        choice=BatchChoice("level", "local", "why", {"level": Expected(2.0, 0.1)}, 1.5, 70),
    )
    full.on_batch_done(first)
    exported = {}
    for family in text_string_to_metric_families(generate_latest(full.make_registry()).decode()):
        labels = set().union(*(sample.labels for sample in family.samples))
        name = f"{family.name}_total" if family.type == "counter" else family.name
        exported[name] = (family.type, *sorted(labels - {"query", "le"}))
    assert exported == EXPORTED


def test_what_a_batch_wrote_is_shown_and_kept(tmp_path: Path) -> None:
    shown = board()
    for batch in range(2):
        shown.on_batch_done(replace(done(batch), written=WRITTEN))
    values = samples(shown)
    assert values["unskew_written_files_total", ()] == 8
    assert values["unskew_batch_written_files", ()] == 4
    assert values["unskew_bytes_per_written_file", ()] == 125
    assert values["unskew_partition_batch_written_bytes", (("partition", "1"),)] == 200

    journal = Journal(str(tmp_path))
    assert journal.write_written_files(0, WRITTEN.to_snapshot())
    read = read_written_files(journal, 0)
    assert read is not None
    assert (read.files.tolist(), read.bytes.tolist()) == ([3, 1], [300, 200])
    assert read_written_files(journal, 1) is None
    # Only displays need it: a file that cannot be read stops nothing.
    (tmp_path / f"{0:012d}" / "written.files").write_bytes(b"damaged")
    assert read_written_files(journal, 0) is None


def test_every_metric_is_there_before_the_first_batch() -> None:
    text = generate_latest(board().make_registry()).decode()
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == set(
        EXPORTED
    )


def test_changes_add_up_and_show_what_they_cost() -> None:
    shown = board()
    for number, choice in enumerate(
        [
            BatchChoice("level", "local", "why", {"level": Expected(2.0, 0.1)}),
            BatchChoice("local", "local", "why", change_seconds=1.5, discarded_records=70),
            BatchChoice("local", "local", "why", {"level": Expected(2.5, 0.1)}),
        ]
    ):
        shown.on_batch_done(replace(done(number), choice=choice))

    values = samples(shown)

    assert values["unskew_grouping_changes_total", ()] == 1
    assert values["unskew_grouping_change_seconds_total", ()] == 1.5
    assert values["unskew_grouping_change_discarded_records_total", ()] == 70
    assert values["unskew_expected_batch_seconds", (("way", "level"),)] == 2.5
    taken = {way: values["unskew_grouping_taken", (("way", way),)] for way in WAYS}
    assert taken == {"none": 0, "local": 1, "level": 0, "level_seconds": 0, "key": 0}


def test_names_follow_the_rules() -> None:
    for metric in METRICS:
        assert metric.help.endswith("."), metric.name
        assert "seconds" in metric.name or "time" not in metric.name.split("_"), metric.name
        assert not metric.name.endswith("_total"), metric.name
        assert list(dict.fromkeys(metric.all_labels)) == list(metric.all_labels), metric.name
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_gauges_show_the_last_batch_and_counters_all() -> None:
    shown = board()
    shown.on_batch_done(done(0))
    shown.on_batch_done(done(1))
    values = samples(shown)
    at = (("partition", "0"),)
    assert values["unskew_partition_batch_records", at] == 30
    assert values["unskew_partition_records_total", at] == 60
    assert values["unskew_partition_busy_seconds_total", at] == 1.0
    assert values["unskew_partition_state_keys", at] == 3
    assert values["unskew_partition_state_bytes", at] == 300
    assert values["unskew_source_records_total", ()] == 1998
    assert values["unskew_batch_source_records", ()] == 999
    assert values["unskew_records_total", ()] == 80
    assert values["unskew_batch_records", ()] == 40
    assert values["unskew_max_over_mean_ratio", ()] == 1.5
    assert values["unskew_partition_batch_under_key_records", at] == 35
    assert values["unskew_under_key_max_over_mean_ratio", ()] == 1.75
    assert values["unskew_replication_ratio", ()] == 1.25
    assert values["unskew_late_partials_total", ()] == 4
    assert values["unskew_late_records_total", ()] == 10
    assert values["unskew_dead_letters_total", (("reason", "not_utf8"),)] == 4
    assert values["unskew_batch_part_seconds", (("part", "add_batch"),)] == 1.2
    assert values["unskew_routing_seconds_total", ()] == 0.25
    signal = (("over_sources", "max"), ("signal", "head_keys"))
    assert values["unskew_grouping_signal", signal] == 2.0
    assert values["unskew_merge_partition_state_bytes", (("merge_partition", "0"),)] == 10
    assert ("unskew_merge_partition_state_rows", (("merge_partition", "0"),)) not in values


def test_a_batch_without_rows_leaves_the_figures_of_the_last_one() -> None:
    shown, once = board(), board()
    for each in (shown, once):
        each.on_batch_done(done(4))
    empty = progress(5, numInputRows=0, durationMs={"triggerExecution": 10, "addBatch": 7})
    shown.on_batch_done(BatchDone(empty, None, journal_bytes=1000, journal_batches=5))
    values, before = samples(shown), samples(once)
    changed = {name for name in before if values.get(name) != before[name]}
    assert {name for name, _ in changed} == {
        "unskew_batches_total",
        "unskew_late_partials_total",
        "unskew_last_batch_timestamp_seconds",
        "unskew_query_start_timestamp_seconds",
        "unskew_merge_partition_state_bytes",
        "unskew_merge_partition_state_rows",
    }
    assert values["unskew_batches_total", ()] == 2
    assert values["unskew_last_batch_number", ()] == 4
    assert values["unskew_batch_seconds_count", ()] == 1


def test_files_that_cannot_be_read_are_shown_until_a_batch_is_done() -> None:
    shown = board()
    shown.on_journal_unreadable(3)
    before = samples(shown)["unskew_journal_unreadable_files", ()]
    shown.on_batch_done(done(0))
    assert (before, samples(shown)["unskew_journal_unreadable_files", ()]) == (3, 0)


def test_the_triggers_interval_is_shown_where_there_is_one() -> None:
    once = Board("q", Health(10.0))
    interval = "unskew_trigger_interval_seconds", ()
    assert samples(board())[interval] == 10.0
    assert interval not in samples(once)


def test_latencies_are_cumulative_buckets() -> None:
    shown = board()
    shown.on_batch_done(done(0))
    values = samples(shown)

    def bucket(partition: str, le: str) -> float:
        labels = (("le", le), ("partition", partition))
        return values["unskew_partition_latency_seconds_bucket", labels]

    assert [bucket("1", le) for le in ("0.025", "0.05", "300.0", "+Inf")] == [0, 10, 10, 11]
    assert values["unskew_partition_latency_seconds_sum", (("partition", "1"),)] == 0.6
    assert values["unskew_batch_seconds_bucket", (("le", "1.0"),)] == 0
    assert values["unskew_batch_seconds_bucket", (("le", "2.5"),)] == 1


def test_the_version_is_a_metric() -> None:
    assert samples(board())["unskew_build_info", (("version", __version__),)] == 1


def test_lag_is_of_the_latest_look() -> None:
    assert compute_lag(progress(0)) == {("lines", "0"): 10, ("lines", "1"): 0}
    files = {"sources": [{"endOffset": '{"logOffset": 3}', "latestOffset": None}]}
    assert compute_lag(files) == {}
    assert compute_lag({"sources": [{"endOffset": None, "latestOffset": {"t": {"0": 5}}}]}) == {}
    shown = board()
    shown.on_batch_done(done(0))
    shown.on_idle_poll({("lines", "0"): 0})
    lags = {labels: v for (name, labels), v in samples(shown).items() if "lag" in name}
    assert lags == {(("kafka_partition", "0"), ("topic", "lines")): 0}


def test_without_reports_spark_counts_and_partitions_stay_empty() -> None:
    shown = board()
    shown.on_batch_done(BatchDone(progress(0), None))
    shown.on_records_rejected({"null_key": 3})
    values = samples(shown)
    assert values["unskew_records_total", ()] == 999
    assert values["unskew_dead_letters_total", (("reason", "null_key"),)] == 3
    assert ("unskew_late_records_total", ()) not in values
    assert not [name for name, _ in values if name.startswith("unskew_partition")]


def test_the_groupings_signals_come_from_the_journal(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    router = Router("w_choices", 4, sources=2, journal=journal)
    for source in (0, 1):
        routed = router.restore_grouping(0, source)
        routed.route(np.full(1000 * (source + 1), 7, np.uint64))
        stats = RoutingStats(0.5, routed.hot_keys(), routed.signals())
        journal.write_routing(0, source, stats)
    journal.write_report(
        0, 0, PartitionReport(records=3000, keys=1, busy_seconds=0.0).to_snapshot(4)
    )
    routing = read_routing(journal, 0)
    assert routing is not None
    assert (routing.sources, routing.seconds, routing.hot_keys) == (2, 1.0, 1)
    assert routing.signals["head_keys"] == (1.0, 1.0)
    assert read_routing(journal, 1) is None
    loaded = read_batch_stats(str(tmp_path), journal, 0)
    assert loaded is not None
    assert loaded.total == 3000


def test_the_page_in_docs_is_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAGE.read_text("utf-8") == page()
    assert main(["--check"]) == 0
    old = tmp_path / "metrics.md"
    old.write_text("old")
    monkeypatch.setattr("docs.reference.metrics.PAGE", old)
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert main(["--check"]) == 0
    assert all(f"`{name}`" in old.read_text() for name in EXPORTED)
