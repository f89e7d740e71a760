"""The partitions of one job: their load, their keys, and the signals of the grouping."""

from typing import Any

from grafana_foundation_sdk.builders import dashboard, table
from grafana_foundation_sdk.models import common as shared

from dashboards.choices import choices
from dashboards.common import (
    BLUE,
    DATASOURCE,
    OVERVIEW_UID,
    PARTITIONS_UID,
    STRETCH_STEPS,
    bar_gauge,
    link_to,
    merge_tables,
    metric,
    partition_heatmap,
    quantile,
    single_value,
    stacked,
    table_target,
    time_series,
    with_rows,
)
from dashboards.common import page as empty_page

NO_SIGNALS = "This grouping has none"
NO_TABLE = "This job writes no rows into a table"
NO_STEPS: Any = ((None, BLUE),)


def page() -> dashboard.Dashboard:
    """Build the dashboard."""
    empty = empty_page(
        PARTITIONS_UID,
        "Unskew: partitions of one job",
        "How evenly one job's partitions are loaded, by which keys, and what its grouping says.",
        many=False,
    ).link(link_to(OVERVIEW_UID, "Overview of all jobs"))
    return with_rows(
        empty,
        ("The last batch of $job", [*_numbers(), *_bars()]),
        ("Over time, a row for each partition", _heatmaps()),
        ("Hot keys", _hot_keys()),
        ("The grouping's own signals", _signals()),
        ("What grouping auto takes", choices()),
        ("The table that is written", _table()),
        ("Batches, merge and Kafka", _around()),
    )


def _filter_query(name: str) -> str:
    return f"max by (partition) ({metric(name)})"


def _over_mean(name: str) -> str:
    of = _filter_query(name)
    return f"{of} / scalar(avg({of}) > 0)"


def _shown(name: str) -> str:
    """A counter's increase over all of the time shown."""
    return f"increase({metric(name)}[$__range])"


def _numbers() -> list[Any]:
    info = f"max by (grouping, operator) ({metric('query_info')})"
    named = single_value(
        "Grouping, operator",
        "How records are spread over partitions, and what is computed of the records of each key.",
        info,
        "none",
        NO_STEPS,
    )
    named.text_mode(shared.BigValueTextMode.NAME)
    named.display_name("${__field.labels.grouping}, ${__field.labels.operator}")
    panels = [named]
    for title, description, name, unit, steps in (
        ("Partitions", "Partitions that records are routed to.", "partitions", "none", NO_STEPS),
        ("Records", "Records of the last batch.", "batch_records", "short", NO_STEPS),
        (
            "Records: max / mean",
            "Records of the fullest partition over the mean: 1 is perfectly even.",
            "max_over_mean_ratio",
            "none",
            STRETCH_STEPS,
        ),
        (
            "Time: max / mean",
            "Time of the slowest partition over the mean: what the batch is stretched by.",
            "busy_max_over_mean_ratio",
            "none",
            STRETCH_STEPS,
        ),
        (
            "Partitions per key",
            "(Key, partition) pairs over distinct keys: 1 means that no key was split.",
            "replication_ratio",
            "none",
            NO_STEPS,
        ),
    ):
        panel = single_value(title, description, f"max({metric(name)})", unit, steps)
        panels.append(panel.decimals(2) if name.endswith("_ratio") else panel)
    return panels


def _bars() -> list[Any]:
    shares = (
        ("Records, over an even share", "Records of each partition over the mean"),
        ("Busy time, over an even share", "Time that each partition was at work over the mean"),
    )
    names = ("partition_batch_records", "partition_batch_busy_seconds")
    even: list[Any] = [
        bar_gauge(
            title,
            f"{measure}, in the last batch. 1 is an even share; the batch ends with the highest"
            " bar.",
            "none",
            _over_mean(name),
            "partition",
            STRETCH_STEPS,
        ).decimals(2)
        for (title, measure), name in zip(shares, names, strict=True)
    ]
    return [
        *even,
        bar_gauge(
            "Latency, mean",
            "From a record's timestamp in Kafka to when its partition was done with it, of all"
            " records in the time shown.",
            "s",
            f"sum by (partition) ({_shown('partition_latency_seconds_sum')})"
            f" / (sum by (partition) ({_shown('partition_latency_seconds_count')}) > 0)",
            "partition",
            NO_STEPS,
        ),
        bar_gauge(
            "State",
            "What the partial results of each partition took in the last batch.",
            "bytes",
            _filter_query("partition_state_bytes"),
            "partition",
            NO_STEPS,
        ),
    ]


def _heatmaps() -> list[Any]:
    return [
        partition_heatmap(
            "Records, over an even share",
            "Records of each partition in its last batch over the mean, from 0 to twice an even"
            " share: one bright row is a hot partition, one colour for all is perfectly even.",
            "none",
            _over_mean("partition_batch_records"),
            "Inferno",
            most=2,
        ),
        partition_heatmap(
            "Busy time in a batch",
            "Time that each partition was at work in its last batch.",
            "s",
            _filter_query("partition_batch_busy_seconds"),
            "Inferno",
        ),
        partition_heatmap(
            "Latency, 95th percentile",
            "From a record's timestamp in Kafka to when its partition was done with it.",
            "s",
            quantile(0.95, "partition_latency_seconds", "partition"),
            "Viridis",
        ),
        partition_heatmap(
            "Distinct keys in a batch",
            "Distinct keys of each partition in its last batch: with each comes a partial result.",
            "short",
            _filter_query("partition_state_keys"),
            "Viridis",
        ),
    ]


_KEY_SHARE = (
    f"max by (key) ({metric('hot_key_records')}) / scalar(max({metric('batch_records')}) > 0)"
)


def _hot_keys() -> list[Any]:
    shown = (
        "By hash, or by name where the job says metrics.hot_key_names; as many as metrics.hot_keys."
    )
    largest = bar_gauge(
        "Largest keys of the last batch",
        f"Share of the batch's records that each key has. {shown}",
        "percentunit",
        f"sort_desc({_KEY_SHARE})",
        "key",
        NO_STEPS,
    ).transformations([])
    over_time = time_series(
        "Largest keys over time",
        f"Share of each batch's records, of its five largest keys. {shown} A key that flares up"
        " shows here first.",
        "percentunit",
        (f"topk(5, {_KEY_SHARE})", "{{key}}"),
        width=12,
    )
    return [
        largest.orientation(shared.VizOrientation.HORIZONTAL).height(10),
        stacked(over_time, bars=True).height(10),
    ]


def _signals() -> list[Any]:
    mean, most = (
        f"max by (signal) ({metric('grouping_signal', matcher)})"
        for matcher in ('over_sources="mean"', 'over_sources="max"')
    )
    names = {"Value #A": "mean", "Value #B": "greatest"}
    listed = (
        table.Panel()
        .title("Signals after the last batch")
        .description("The grouping's own figures: mean and greatest over the sources.")
        .datasource(DATASOURCE)
        .targets([table_target(mean), table_target(most, "B")])
        .span(8)
        .height(10)
        .unit("short")
        .no_value(NO_SIGNALS)
        .transformations(merge_tables(("Time",), names))
    )
    return [
        listed,
        time_series(
            "Signals over time",
            "Mean over the sources; a click on a name shows one alone. docs/groupings.md says what"
            " each means.",
            "short",
            (mean, "{{signal}}"),
            width=8,
        )
        .no_value(NO_SIGNALS)
        .height(10),
        time_series(
            "Routing against work",
            "Time that all sources together spent in routing the last batch, and time that all"
            " partitions together were at work.",
            "s",
            (f"max({metric('batch_routing_seconds')})", "routing"),
            (f"sum({_filter_query('partition_batch_busy_seconds')})", "work"),
            width=8,
        ).height(10),
    ]


def _table() -> list[Any]:
    files = time_series(
        "Files a batch",
        "Files that the last batch added to the table; at the least one for each value that the"
        " table is partitioned by.",
        "short",
        (f"max({metric('batch_written_files')})", "files"),
    )
    size = time_series(
        "Bytes a file",
        "The mean size of the files of the last batch. Many small files make readers slow: give"
        " batches more time, or compact the table.",
        "bytes",
        (f"max({metric('bytes_per_written_file')})", "mean"),
    )
    written = bar_gauge(
        "Bytes by writer",
        "Bytes that each partition's writer added in the last batch.",
        "bytes",
        _filter_query("partition_batch_written_bytes"),
        "partition",
        NO_STEPS,
    ).span(8)
    files_by_writer = bar_gauge(
        "Files by writer",
        "Files that each partition's writer added in the last batch. Each costs a round trip and a"
        " footer: a writer with many small ones may be the slowest though bytes are even.",
        "short",
        _filter_query("partition_batch_written_files"),
        "partition",
        NO_STEPS,
    ).span(8)
    return [panel.no_value(NO_TABLE) for panel in (files, size, written, files_by_writer)]


def _around() -> list[Any]:
    parts = time_series(
        "Where a batch's time goes",
        "The parts of the last batch: add_batch is the work itself, the rest is Spark's own.",
        "s",
        (f"max by (part) ({metric('batch_part_seconds')})", "{{part}}"),
    )
    return [
        stacked(parts),
        time_series(
            "Merge state by partition",
            "What a restart would load of each state partition of the merge, from the checkpoint.",
            "bytes",
            (
                f"max by (merge_partition) ({metric('merge_partition_state_bytes')})",
                "{{merge_partition}}",
            ),
        ),
        time_series(
            "Kafka lag by partition",
            "Records that were not read when the last batch began.",
            "short",
            (
                f"max by (topic, kafka_partition) ({metric('kafka_lag_records')})",
                "{{topic}} {{kafka_partition}}",
            ),
        ),
    ]
