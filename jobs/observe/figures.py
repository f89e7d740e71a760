"""The table of figures: all that is shown of a batch, a row each.

Prometheus, the live page, the log, the terminal's line and `inspect` choose from it, each by the
rows that have a name for it. So a new figure is a new row.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from unskew.grouping.spark.report import LATENCY_BOUNDS_SECONDS, WINDOW_ENDS
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.batches.batch_stats import BatchStats, show_key
from unskew.jobs.observe.batches.batch_time import (
    estimate_seconds_level,
    estimate_seconds_under_key,
    split_seconds,
)
from unskew.jobs.observe.batches.written import WrittenFiles
from unskew.jobs.observe.choices.figures import CHOICE_FIGURES
from unskew.jobs.observe.figure import PARTITION, Buckets, Figure, Value

HOT_KEY_SERIES_MAX = 1000
BATCH_BOUNDS_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)


def _from_stats(take: Callable[[BatchStats], Any]) -> Value:
    """Make a value from the batch's stats; none if no partition reported."""
    return lambda done: None if done.stats is None else take(done.stats)


def _read_numbers(name: str) -> Value:
    """Read a number that each partition reported, by its name in the report."""
    return _from_stats(lambda stats: stats.numbers[name])


def _read_opened(name: str) -> Value:
    """Read what the operator opened in each partition; none if it opens nothing."""

    def take(stats: BatchStats) -> Any:
        asked = stats.numbers.get("open_hits", 0) + stats.numbers.get("open_misses", 0)
        return stats.numbers[name] if np.any(asked) else None

    return _from_stats(take)


def _sum_opened(name: str) -> Value:
    """Sum what the operator opened over the partitions; none if it opens nothing."""

    def take(done: BatchDone) -> Any:
        values = _read_opened(name)(done)
        return None if values is None else values.sum().item()

    return take


def _sum(name: str) -> Value:
    """Sum a number that each partition reported, by its name in the report."""
    return _from_stats(lambda stats: int(stats.numbers[name].sum()))


def _read_routing(name: str) -> Value:
    """Read an attribute of the batch's routing; none if nothing was routed."""
    return lambda done: None if done.routing is None else getattr(done.routing, name)


def _from_written(take: Callable[[WrittenFiles], Any]) -> Value:
    """Make a value from what the batch added to a table; none if the job has no table."""
    return lambda done: None if done.written is None else take(done.written)


def _read_signals(done: BatchDone) -> dict[tuple[str, str], float] | None:
    if done.routing is None:
        return None
    return {
        (name, over): value
        for name, values in done.routing.signals.items()
        for over, value in zip(("mean", "max"), values, strict=True)
    }


def _sum_latencies(stats: BatchStats) -> dict[str, Buckets]:
    seconds = stats.numbers["latency_seconds"]
    parts = zip(stats.latency_counts.tolist(), seconds.tolist(), strict=True)
    return {
        str(partition): Buckets(tuple(counts), sum_seconds)
        for partition, (counts, sum_seconds) in enumerate(parts)
    }


def _merge_rows(done: BatchDone) -> dict[str, int]:
    return {str(part.partition): part.rows for part in done.merge if part.rows is not None}


def _list_hot_keys(done: BatchDone) -> list[list[Any]]:
    """List the largest keys and their records, in an order that a JavaScript mapping loses."""
    keys = done.stats.hot_keys if done.stats else ()
    return [[show_key(key), key.records] for key in keys]


# Laid out by hand: name and kind, help, value, and where it is shown.
# fmt: off
FIGURES: tuple[Figure, ...] = (
    Figure("build_info", "gauge", "Always 1; the version of Unskew.", labels=("version",)),
    Figure("query_info", "gauge",
        "Always 1; what the query runs.",
        labels=("grouping", "operator")),
    Figure("query_up", "gauge", "1 while the query runs and has not stalled, otherwise 0."),
    Figure("query_state", "gauge",
        "1 for the state that the query is in.",
        labels=("state",)),
    Figure("query_start_timestamp_seconds", "gauge", "When this process began, as Unix time."),
    Figure("trigger_interval_seconds", "gauge", "The trigger's interval; none for available_now."),
    Figure("last_batch_timestamp_seconds", "gauge",
        "When the last batch was done, also one without rows, as Unix time.",
        lambda _: time.time(), empty_batches=True),
    Figure("last_batch_number", "gauge",
        "The number of the last batch that had rows.",
        lambda done: done.batch, page="batch", log="batch", line="batch {}", inspect="batch",
        column=("batch", "{}")),
    Figure("partitions", "gauge",
        "Partitions that records are routed to.",
        _from_stats(lambda stats: stats.records.size)),
    Figure("batches", "counter",
        "Finished batches, also those without rows: Spark runs them to advance the watermark, and"
        " they leave the figures of the last batch as they are.",
        lambda _: 1, empty_batches=True),
    Figure("batch_seconds", "histogram",
        "How long batches with rows took, from trigger to commit.",
        lambda done: done.seconds, bounds=BATCH_BOUNDS_SECONDS, page="seconds", log="seconds",
        line="took {:.1f} s"),
    Figure("began", "",
        "When the batch was triggered, as Unix time.",
        lambda done: done.began, page="began"),
    Figure("time_seconds", "",
        "Where the batch's time went: the parts add up to it.",
        split_seconds, page="parts"),
    Figure("under_key_seconds", "",
        "What the batch would have taken under the grouping `key`, by the times measured here.",
        estimate_seconds_under_key, page="under_key_seconds", log="under_key_seconds",
        line="under key {:.1f} s"),
    Figure("level_seconds", "",
        "What the batch would have taken with equal partitions.",
        estimate_seconds_level, page="level_seconds", log="level_seconds"),
    Figure("batch_part_seconds", "gauge",
        "How long each part of the last batch took.",
        lambda done: done.parts, ("part",)),
    Figure("source_records", "counter",
        "Records read from the source, as Spark counts them, before keys are taken out of them: one"
        " may hold several words or tags. If a task ran twice, both runs may count.",
        lambda done: done.source_records),
    Figure("batch_source_records", "gauge",
        "Records read from the source in the last batch.",
        lambda done: done.source_records or None, page="source_records", inspect="read_records",
        column=("read", "{:,}")),
    Figure("filtered_records", "counter",
        "Records of which the job's or the operator's `where` is not true. If a task ran twice,"
        " both runs may count.",
        lambda done: done.filtered_records, log="filtered"),
    Figure("batch_filtered_records", "gauge",
        "Records of the last batch of which a `where` is not true; no value in a job without one.",
        lambda done: done.filtered_records if done.filters else None,
        inspect="filtered_records", column=("filtered", "{:,}")),
    Figure("records", "counter",
        "Records done; with grouping none, as Spark counts its input.",
        lambda done: done.records),
    Figure("batch_records", "gauge",
        "Records of the last batch.",
        lambda done: done.records, page="records", log="records", inspect="records",
        column=("records", "{:,}")),
    Figure("records_per_second", "",
        "Records of the batch over the time it took.",
        lambda done: done.records / done.seconds if done.seconds else 0.0,
        page="records_per_second", log="records_per_second", digits=1, line="{:,.0f} records/s"),
    Figure("partition_records", "counter",
        "Records done by a partition.",
        _from_stats(lambda stats: stats.records), PARTITION),
    Figure("partition_batch_records", "gauge",
        "Records of a partition in the last batch.",
        _from_stats(lambda stats: stats.records), PARTITION, page="partitions.records",
        inspect="records"),
    Figure("partition_batch_under_key_records", "gauge",
        "Records that a partition would have had in the last batch under the grouping `key`.",
        _from_stats(lambda stats: stats.under_key), PARTITION, page="partitions.under_key",
        inspect="under_key_records"),
    Figure("partition_busy_seconds", "counter",
        "Time a partition was busy.",
        _from_stats(lambda stats: stats.busy_seconds), PARTITION),
    Figure("partition_batch_busy_seconds", "gauge",
        "Time a partition was busy in the last batch.",
        _from_stats(lambda stats: stats.busy_seconds), PARTITION, page="partitions.busy_seconds",
        inspect="busy_seconds"),
    Figure("partition_latency_seconds", "histogram",
        "From a record's timestamp in the queue to when its partition was done with it.",
        _from_stats(_sum_latencies), PARTITION, LATENCY_BOUNDS_SECONDS),
    Figure("partition_state_keys", "gauge",
        "Distinct keys of a partition in the last batch.",
        _read_numbers("keys"), PARTITION, page="partitions.keys",
        inspect="state_keys", column=("keys", "{:,}")),
    Figure("partition_state_bytes", "gauge",
        "Bytes of a partition's partial results in the last batch.",
        _read_numbers("state_bytes"), PARTITION, inspect="state_bytes",
        column=("bytes", "{:,}")),
    Figure("max_over_mean_ratio", "gauge",
        "Records of the fullest partition over the mean.",
        _from_stats(lambda stats: stats.max_over_mean), page="max_over_mean", log="max_over_mean",
        line="max/mean {:.2f}", inspect="max_over_mean", column=("max/mean", "{:.3f}")),
    Figure("under_key_max_over_mean_ratio", "gauge",
        "What max_over_mean_ratio would have been under the grouping `key`.",
        _from_stats(lambda stats: stats.under_key_max_over_mean), page="under_key_max_over_mean",
        inspect="under_key_max_over_mean"),
    Figure("imbalance", "",
        "Records of the fullest partition above the mean, as a share of all.",
        _from_stats(lambda stats: stats.imbalance), page="imbalance"),
    Figure("busy_max_over_mean_ratio", "gauge",
        "Time of the slowest partition over the mean.",
        _from_stats(lambda stats: stats.busy_max_over_mean), inspect="busy_max_over_mean",
        column=("busy max/mean", "{:.3f}")),
    Figure("slowest_partition", "",
        "The partition that was busy longest.",
        _from_stats(lambda stats: stats.slowest), log="slowest_partition", line="slowest p{}",
        inspect="slowest_partition", column=("slowest", "p{}")),
    Figure("slowest_busy_seconds", "",
        "How long the slowest partition was busy.",
        _from_stats(lambda stats: float(stats.busy_seconds.max())), log="slowest_busy_seconds",
        page="slowest_busy_seconds", inspect="slowest_busy_seconds"),
    Figure("mean_busy_seconds", "",
        "How long the partitions were busy in the mean.",
        _from_stats(lambda stats: float(stats.busy_seconds.mean())), page="mean_busy_seconds"),
    Figure("busy_seconds", "",
        "Time that all partitions together were busy.",
        _from_stats(lambda stats: float(stats.busy_seconds.sum())), inspect="busy_seconds",
        column=("busy s", "{:.3f}")),
    Figure("replication_ratio", "gauge",
        "(Key, partition) pairs over distinct keys.",
        _from_stats(lambda stats: stats.replication), page="replication", log="replication",
        inspect="replication", column=("replication", "{:.3f}")),
    Figure("hot_keys", "gauge",
        "Keys that the grouping treats as hot, all sources together.",
        _read_routing("hot_keys"), page="routing.hot_keys", log="hot_keys"),
    Figure("hot_key_records", "gauge",
        "Records of the largest keys in the last batch, as many as metrics.hot_keys; by a hash that"
        " the job's own secret makes, or by name with metrics.hot_key_names. A process shows up to"
        f" {HOT_KEY_SERIES_MAX} different keys; the records of all later ones are `(others)`.",
        _from_stats(lambda stats: {show_key(key): key.records for key in stats.hot_keys}), ("key",),
        series_max=HOT_KEY_SERIES_MAX),
    Figure("largest_keys", "",
        "The largest keys of the last batch with their records, largest first.",
        _list_hot_keys, page="hot_keys"),
    Figure("sources", "gauge",
        "Sources that routed the last batch.",
        _read_routing("sources"), page="routing.sources", inspect="sources"),
    Figure("routing_seconds", "counter",
        "Time spent in routing, all sources together.",
        _read_routing("seconds")),
    Figure("batch_routing_seconds", "gauge",
        "Time spent in routing the last batch, all sources together.",
        _read_routing("seconds"), page="routing.seconds", log="routing_seconds",
        inspect="routing_seconds", column=("routing s", "{:.3f}")),
    Figure("grouping_signal", "gauge",
        "The grouping's own figures after the last batch, mean and greatest over the sources.",
        _read_signals, ("signal", "over_sources")),
    *CHOICE_FIGURES,
    Figure("state_keys", "",
        "Distinct keys of each partition, summed.",
        _sum("keys"), inspect="state_keys",
        column=("keys", "{:,}")),
    Figure("state_bytes", "",
        "Bytes of the partial results of all partitions.",
        _sum("state_bytes"), inspect="state_bytes",
        column=("bytes", "{:,}")),
    Figure("open_hits", "counter",
        "How often the operator needed something opened for a key (`open`) and the worker had it.",
        _sum_opened("open_hits")),
    Figure("open_misses", "counter",
        "How often the operator needed something opened for a key and the worker did not have it.",
        _sum_opened("open_misses")),
    Figure("open_seconds", "counter",
        "Time spent opening what keys need, all partitions together; not part of busy time.",
        _sum_opened("open_seconds")),
    Figure("batch_open_hits", "",
        "How often, in the last batch, a key's resource was already open in the worker.",
        _sum_opened("open_hits"), log="open_hits", inspect="open_hits",
        column=("open hits", "{:,}")),
    Figure("batch_open_misses", "",
        "How often, in the last batch, the worker had to open a key's resource.",
        _sum_opened("open_misses"), log="open_misses", inspect="open_misses",
        column=("open misses", "{:,}")),
    Figure("batch_open_seconds", "",
        "Time spent opening what keys need in the last batch, all partitions together.",
        _sum_opened("open_seconds"), log="open_seconds", inspect="open_seconds",
        column=("open s", "{:.3f}")),
    Figure("partition_batch_open_seconds", "gauge",
        "Time that a partition spent in opening what its keys need, in the last batch.",
        _read_opened("open_seconds"), PARTITION, inspect="open_seconds",
        column=("open s", "{:.3f}")),
    Figure("result_records", "counter",
        "Records of each result, in a job with several (`operators`).",
        _from_stats(lambda stats: dict(stats.results) or None), ("result",),
        log="result_records", inspect="result_records"),
    Figure("result_filtered_records", "counter",
        "Records of which a result's own `where` is not true.",
        lambda done: done.filtered_by_result or None, ("result",),
        log="result_filtered", inspect="result_filtered_records"),
    Figure("result_rejected_records", "counter",
        "Records that this result rejected and at least one other result used.",
        _from_stats(lambda stats: dict(stats.result_rejected) or None), ("result",)),
    Figure("result_late_records", "counter",
        "Late records of each result; see unskew_late_records_total.",
        _from_stats(lambda stats: stats.result_late or None), ("result",)),
    Figure("result_accounts", "",
        "What became of the records, by result: read, counted, filtered, rejected and late.",
        lambda done: {n: asdict(each) for n, each in (done.result_accounts or {}).items()} or None,
        page="results", inspect="result_accounts"),
    Figure("late_partials", "counter",
        "Results of a key and window in a batch, each of one record or many, that were dropped"
        " because the window was over.",
        lambda done: done.late_partials, empty_batches=True),
    Figure("late_records", "counter",
        "Records dropped because all their windows were over, by the watermark of the batch before"
        " theirs, as Spark drops them; of sliding windows, a record with one still open is not"
        " late. There is no value where Spark computes the operator itself (grouping none)."
        f" It is a lower bound if a partition has records of more than {WINDOW_ENDS} windows that"
        " are over, in one batch.",
        lambda done: done.late_records, inspect="late_records", column=("late", "{:,}")),
    Figure("watermark_timestamp_seconds", "gauge",
        "The watermark of the last batch, as Unix time; none without windows, or before it first"
        " moved. Records whose windows end before it are late.",
        lambda done: done.watermark, empty_batches=True, page="watermark", inspect="watermark"),
    Figure("watermark_behind_seconds", "",
        "How long before now the watermark is; below zero, it is in the future.",
        lambda done: None if done.watermark is None else time.time() - done.watermark,
        inspect="watermark_behind_seconds", column=("watermark behind s", "{:,.0f}")),
    Figure("dead_letters", "counter",
        "Rejected records, by reason.",
        lambda done: dict(done.stats.rejected) if done.stats else {}, ("reason",),
        page="dead_letters", inspect="dead_letters"),
    Figure("rejected_samples", "",
        "Some of the rejected records.",
        lambda done: [asdict(sample) for sample in done.samples], page="samples"),
    Figure("written_files", "counter",
        "Files added to the table that the job writes.",
        _from_written(lambda written: int(written.files.sum()))),
    Figure("batch_written_files", "gauge",
        "Files added to the table by the last batch.",
        _from_written(lambda written: int(written.files.sum())), page="written.files",
        log="written_files", inspect="written_files", column=("files", "{:,}")),
    Figure("batch_written_bytes", "gauge",
        "Bytes of the files that the last batch added to the table.",
        _from_written(lambda written: int(written.bytes.sum())), page="written.bytes",
        inspect="written_bytes"),
    Figure("bytes_per_written_file", "gauge",
        "The mean size of the files that the last batch added to the table.",
        _from_written(lambda written: written.bytes_a_file), log="bytes_per_file", digits=0,
        inspect="bytes_per_file", column=("bytes/file", "{:,.0f}")),
    Figure("partition_batch_written_files", "gauge",
        "Files that a partition's writer added to the table in the last batch.",
        _from_written(lambda written: written.files), PARTITION, inspect="written_files",
        column=("files", "{:,}")),
    Figure("partition_batch_written_bytes", "gauge",
        "Bytes that a partition's writer added to the table in the last batch.",
        _from_written(lambda written: written.bytes), PARTITION, inspect="written_bytes",
        column=("written bytes", "{:,}")),
    Figure("kafka_lag_records", "gauge",
        "Records that were in Kafka when the last batch began and that it left unread.",
        lambda done: done.lag, ("topic", "kafka_partition"), empty_batches=True),
    Figure("lag", "",
        "Records that were in Kafka when the last batch began and that it left unread, summed.",
        lambda done: sum(done.lag.values()) if done.lag else None, page="lag", log="lag",
        line="lag {:,}"),
    Figure("merge_state_rows", "gauge",
        "Rows in the state of the merge.",
        lambda done: done.merge_rows, empty_batches=True),
    Figure("merge_state_bytes", "gauge",
        "Memory of the state of the merge.",
        lambda done: done.merge_bytes, empty_batches=True),
    Figure("merge_partition_state_rows", "gauge",
        "Rows of a state partition in the checkpoint, as of its newest snapshot.",
        _merge_rows, ("merge_partition",), empty_batches=True),
    Figure("merge_partition_state_bytes", "gauge",
        "Bytes of a state partition that a restart would load from the checkpoint.",
        lambda done: {str(part.partition): part.bytes for part in done.merge},
        ("merge_partition",), empty_batches=True),
    Figure("journal_bytes", "gauge",
        "Size of the journal.",
        lambda done: done.journal_bytes, empty_batches=True),
    Figure("journal_batches", "gauge",
        "Batches that the journal holds.",
        lambda done: done.journal_batches, empty_batches=True),
    Figure("journal_unreadable_files", "gauge",
        "Files of the journal that the next batch needs and cannot read; set when the job failed.",
        lambda _: 0, empty_batches=True),  # a batch is done only if all could be read
)
# fmt: on
METRICS = tuple(figure for figure in FIGURES if figure.kind)
"""The figures that Prometheus has."""
