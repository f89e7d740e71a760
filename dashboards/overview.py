"""The overview of all jobs: their health, and what skew costs them now."""

from typing import Any

from grafana_foundation_sdk.builders import dashboard, table
from grafana_foundation_sdk.builders import timeseries as lines
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as model

from dashboards.common import (
    BLUE,
    COST_STEPS,
    DATASOURCE,
    GREEN,
    GREY,
    LINK_VALUES,
    ORANGE,
    OVERVIEW_UID,
    PARTITIONS_UID,
    RED,
    STEP,
    STRETCH_STEPS,
    fixed,
    link_to,
    merge_tables,
    metric,
    override,
    quantile,
    rate,
    single_value,
    stacked,
    table_target,
    time_series,
    with_dashed_thresholds,
    with_rows,
)
from dashboards.common import page as empty_page

_BUSY = metric("partition_batch_busy_seconds")
BATCH_SECONDS = f"max by (query) (sum by (query, instance) ({metric('batch_part_seconds')}))"
SKEW_SECONDS = f"(max by (query) ({_BUSY}) - avg by (query) ({_BUSY}))"
"""Time of the slowest partition over the mean of all."""
SKEW_SHARE = f"{SKEW_SECONDS} / {BATCH_SECONDS}"
LAG = metric("kafka_lag_records")
RATIO = {"decimals": 2, "steps": STRETCH_STEPS}
_SKEW_SHARE_HELP = (
    "(busy time of the slowest partition - mean of all) / time of the batch, of the last batch."
    " A batch ends with its slowest partition, so this much of it would be saved if all partitions"
    " had the same to do and each had a slot of its own."
)


def page() -> dashboard.Dashboard:
    """Build the dashboard."""
    empty = empty_page(
        OVERVIEW_UID,
        "Unskew: overview",
        "Are the jobs healthy, and what does skew cost them now?",
        many=True,
    ).link(link_to(PARTITIONS_UID, "Partitions of one job"))
    return with_rows(
        empty,
        ("Is it healthy?", [*_health(), *_now(), _jobs()]),
        ("What does skew cost now?", _skew()),
        ("Throughput, lag, latency", _flow()),
        ("Rejected, late, kept", _rest()),
    )


def _health() -> list[Any]:
    up = f"max by (query) ({metric('query_up')})"
    seen = f"count(count by (query) (last_over_time({metric('query_up')}[$__range])))"
    fine: Any = ((None, GREEN), (1, RED))
    none_down = model.ValueMap(
        options={"0": model.ValueMappingResult(text="none", color=GREEN, index=0)}
    )
    return [
        single_value(
            "Jobs not running",
            "Jobs that ran in the time shown and do not run now: stopped, failed, stalled, or not"
            " scraped.",
            f"{seen} - (sum({up}) or vector(0))",
            "none",
            fine,
        ).mappings([none_down]),
        single_value(
            "Skew costs, worst job",
            f"{_SKEW_SHARE_HELP} Of the job where it is the most.",
            f"max({SKEW_SHARE})",
            "percentunit",
            COST_STEPS,
        ).decimals(0),
    ]


def _now() -> list[Any]:
    return [
        single_value(
            "Records a second",
            "Records done a second, all jobs together.",
            f"sum({rate('records_total')})",
            "short",
            ((None, BLUE),),
        ).decimals(0),
        single_value(
            "Kafka lag",
            "Records in Kafka that were not read when the last batches began, all jobs together."
            " It falls to nearly 0 where jobs keep up.",
            f"sum({LAG}) or vector(0)",
            "short",
            ((None, BLUE),),
        ),
        single_value(
            "Latency (99 %)",
            "From a record's timestamp in Kafka to when its partition was done with it, of the"
            " slowest job.",
            f"max({quantile(0.99, 'partition_latency_seconds', 'query')})",
            "s",
            ((None, BLUE),),
        ),
        single_value(
            "Dead letters",
            "Rejected records in the time shown.",
            f"sum(increase({metric('dead_letters_total')}[$__range])) or vector(0)",
            "short",
            ((None, GREEN), (1, ORANGE)),
        ).decimals(0),
    ]


_COLUMNS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("job", metric("query_info"), "query, grouping, operator", {}),
    ("state", f"{metric('query_state')} == 1", "query, state", {}),
    ("ended ago", f"time() - {metric('last_batch_timestamp_seconds')}", "query", {"unit": "s"}),
    ("batch took", BATCH_SECONDS, "", {"unit": "s"}),
    ("skew costs", SKEW_SHARE, "", {"unit": "percentunit", "steps": COST_STEPS}),
    ("time max/mean", metric("busy_max_over_mean_ratio"), "query", RATIO),
    ("records max/mean", metric("max_over_mean_ratio"), "query", RATIO),
    ("partitions/key", metric("replication_ratio"), "query", {"decimals": 2}),
    ("records/s", rate("records_total"), "query", {"unit": "short"}),
    ("lag", f"sum by (query) ({LAG})", "", {"unit": "short"}),
)


def _jobs() -> table.Panel:
    """A table with one row a job, with the values of all queries."""
    ref_ids = "ABCDEFGHIJ"
    panel = (
        table.Panel()
        .title("Jobs")
        .description(
            "One row a job, of its last batch; click a job's name to see its partitions."
            " Without partitions (grouping none) there is no cost of skew to measure."
        )
        .datasource(DATASOURCE)
        .span(24)
        .height(6)
        .interval(STEP)
        .align(shared.FieldTextAlignment.AUTO)
        .min_width(80)
    )
    names = {"query": "job"}
    for ref_id, (name, expression, by, look) in zip(ref_ids, _COLUMNS, strict=True):
        query = f"max by ({by}) ({expression})" if by else expression
        panel = panel.with_target(table_target(query, ref_id))
        if by in ("query", ""):
            names[f"Value #{ref_id}"] = name
            panel = panel.override_by_name(name, _look(**look))
    state = [
        {"type": "value", "options": {"running": {"color": GREEN, "index": 0}}},
        {
            "type": "regex",
            "options": {"pattern": "failed|stalled", "result": {"color": RED, "index": 1}},
        },
    ]
    coloured = {"mode": "fixed", "fixedColor": GREY}
    return (
        panel.override_by_name("job", override(links=[_to_partitions("${__value.raw}")]))
        .override_by_name(
            "state", override(mappings=state, color=coloured, custom_cellOptions=_TEXT)
        )
        .transformations(merge_tables(("Time", "Value #A", "Value #B"), names, ("query", "state")))
    )


_TEXT = {"type": "color-text"}
DASHES = {"fill": "dash", "dash": [8, 6]}


def _look(unit: str = "short", decimals: int | None = None, steps: Any = None) -> Any:
    look: dict[str, Any] = {"unit": unit}
    if decimals is not None:
        look["decimals"] = decimals
    if steps is not None:
        listed = [{"value": value, "color": colour} for value, colour in steps]
        look["thresholds"] = {"mode": "absolute", "steps": listed}
        look["color"] = {"mode": "thresholds"}
        look["custom_cellOptions"] = _TEXT
    return override(**look)


def _to_partitions(job: str) -> dict[str, Any]:
    url = f"/d/{PARTITIONS_UID}?var-job={job}&{LINK_VALUES}"
    return {"title": "Partitions of this job", "url": url, "targetBlank": False}


def _skew() -> list[Any]:
    took, ideal, trigger = "took", "balanced ideal", "trigger's interval"
    batch = (
        time_series(
            "Batch time against the balanced ideal: $job",
            "How long the last batch took, and how long it would have taken if each partition had"
            " had the same to do: less by what the slowest partition took longer than the mean."
            " The band between is the price of skew. It assumes a slot for every partition. Batches"
            " that take longer than the trigger's interval cannot keep up with it.",
            "s",
            (BATCH_SECONDS, took),
            (f"{BATCH_SECONDS} - {SKEW_SECONDS}", ideal),
            (f"max by (query) ({metric('trigger_interval_seconds')})", trigger),
            width=24,
        )
        .repeat("job")
        .repeat_direction("h")
        .max_per_row(2)
        .fill_opacity(0)
        .override_by_name(
            took, override(color=fixed(RED), custom_fillBelowTo=ideal, custom_fillOpacity=25)
        )
        .override_by_name(ideal, override(color=fixed(GREEN), custom_fillOpacity=8))
        .override_by_name(trigger, override(color=fixed(GREY), custom_lineStyle=DASHES))
    )
    return [batch, *_imbalance()]


def _imbalance() -> list[lines.Panel]:
    cost = time_series(
        "Share of batch time that skew costs",
        _SKEW_SHARE_HELP,
        "percentunit",
        (SKEW_SHARE, "{{query}}"),
    )
    busy = time_series(
        "Imbalance: most over mean",
        "Of the last batch: the fullest partition's records over the mean (solid), and the slowest"
        " partition's time over the mean (dashed). 1 is perfectly even. Time differs from records"
        " where some keys cost more or some executors are slower.",
        "none",
        (f"max by (query) ({metric('max_over_mean_ratio')})", "{{query}}: records"),
        (f"max by (query) ({metric('busy_max_over_mean_ratio')})", "{{query}}: time"),
    )
    replication = time_series(
        "The price of balance: partitions per key",
        "(Key, partition) pairs over distinct keys, of the last batch. 1 means that no key was"
        " split; every further pair is one more partial result to merge.",
        "none",
        (f"max by (query) ({metric('replication_ratio')})", "{{query}}"),
    )
    return [
        with_dashed_thresholds(cost.min(0).axis_soft_max(0.4), COST_STEPS),
        with_dashed_thresholds(
            busy.min(1).decimals(2).axis_soft_max(2.2), STRETCH_STEPS
        ).override_by_regexp("/: time$/", override(custom_lineStyle=DASHES, custom_fillOpacity=0)),
        replication.min(1).decimals(2).axis_soft_max(1.2),
    ]


def _ratio(top: str, bottom: str) -> str:
    """The ratio of two counters by job; no value while the second does not grow."""
    return f"sum by (query) ({top}) / (sum by (query) ({bottom}) > 0)"


def _flow() -> list[lines.Panel]:
    return [
        time_series(
            "Records a second",
            "Records done, by job.",
            "short",
            (f"sum by (query) ({rate('records_total')})", "{{query}}"),
        ),
        time_series(
            "Kafka lag",
            "Records in Kafka that were not read when the last batch began, by job and topic."
            " Lag that grows means that batches take longer than new records take to come.",
            "short",
            (f"sum by (query, topic) ({LAG})", "{{query}}: {{topic}}"),
        ),
        time_series(
            "Latency from Kafka to done",
            "From a record's timestamp in Kafka to when its partition was done with it: the median"
            " and the 99th percentile of all records.",
            "s",
            (quantile(0.99, "partition_latency_seconds", "query"), "{{query}}: 99 %"),
            (quantile(0.5, "partition_latency_seconds", "query"), "{{query}}: median"),
        ),
        time_series(
            "Batches",
            "How long batches took from trigger to commit, mean over the interval.",
            "s",
            (_ratio(rate("batch_seconds_sum"), rate("batch_seconds_count")), "{{query}}"),
        ),
        time_series(
            "What routing costs",
            "Time that the sources spent in routing, for each record.",
            "s",
            (_ratio(rate("routing_seconds_total"), rate("records_total")), "{{query}}"),
        ),
        time_series(
            "Hot keys",
            "Keys that the grouping treats as hot, all sources together.",
            "short",
            (f"max by (query) ({metric('hot_keys')})", "{{query}}"),
        ),
    ]


def _rest() -> list[lines.Panel]:
    dead = time_series(
        "Dead letters a second",
        "Rejected records a second, by job and reason. They are written where the job's section"
        " dead_letters says.",
        "short",
        (f"sum by (query, reason) ({rate('dead_letters_total')})", "{{query}}: {{reason}}"),
    )
    late = time_series(
        "Too late, a second",
        "Records a second that were dropped because all their windows were over, and the partial"
        " results dropped, of which one may be many records, or a part of one whose later windows"
        " are open: raise lateness if they matter.",
        "short",
        (f"sum by (query) ({rate('late_records_total')})", "{{query}}: records"),
        (f"sum by (query) ({rate('late_partials_total')})", "{{query}}: partial results"),
    )
    return [
        stacked(dead, bars=True),
        late.axis_soft_max(1),
        time_series(
            "Rows in the merge's state",
            "Rows that the merge keeps: with windows, of those that are still open; without, one"
            " for each key ever seen.",
            "short",
            (f"max by (query) ({metric('merge_state_rows')})", "{{query}}"),
        ),
        time_series(
            "Memory of the merge's state",
            "Memory that the merge's state takes in the executors.",
            "bytes",
            (f"max by (query) ({metric('merge_state_bytes')})", "{{query}}"),
        ),
        time_series(
            "Merge state in the checkpoint",
            "What a restart would load of the merge's state, all its partitions together.",
            "bytes",
            (f"sum by (query) ({metric('merge_partition_state_bytes')})", "{{query}}"),
        ),
        time_series(
            "Journal",
            "Size of the folder beside the checkpoint with routing states and reports: of the last"
            " 20 batches, so it stays level.",
            "bytes",
            (f"max by (query) ({metric('journal_bytes')})", "{{query}}"),
        ),
    ]
