"""What `grouping: auto` takes of one job, and by which expectations."""

from typing import Any

from grafana_foundation_sdk.builders import common as parts
from grafana_foundation_sdk.builders import statetimeline
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as model

from dashboards.common import (
    BLUE,
    DATASOURCE,
    GAP_MILLISECONDS,
    GREEN,
    metric,
    single_value,
    target,
    time_series,
)

NOT_AUTO = "Only grouping auto chooses"


def choices() -> list[Any]:
    """The panels; those of a job with another grouping have no values."""
    expected = time_series(
        "Expected seconds of a batch",
        "What the model expects of a batch under each way that auto may take, corrected by the"
        " last batches: it takes the least, if that saves more than a change costs.",
        "s",
        (f"max by (way) ({metric('expected_batch_seconds')})", "{{way}}"),
        width=12,
    )
    deviation = time_series(
        "How sure that is",
        "The standard deviation of each way's difference to what is taken, and of the seconds of"
        " what is taken: auto changes only where the difference is beyond doubt.",
        "s",
        (f"max by (way) ({metric('expected_batch_deviation_seconds')})", "{{way}}"),
        width=12,
    )
    panels = [*_changes(), _taken(), expected, deviation]
    return [panel.no_value(NOT_AUTO) for panel in panels]


def _changes() -> list[Any]:
    counters = (
        (
            "Changes",
            "How often auto restarted the query with another grouping",
            "changes_total",
        ),
        ("Seconds of changes", "What the changes took in all", "change_seconds_total"),
        (
            "Records read again",
            "Records that the query had worked on when it was stopped for a change",
            "change_discarded_records_total",
        ),
    )
    return [
        single_value(
            title,
            f"{what}, in the time shown.",
            f"max(increase({metric(f'grouping_{name}')}[$__range]))",
            "s" if "seconds" in name else "short",
            ((None, BLUE),),
        )
        .decimals(0)
        .height(7)
        for title, what, name in counters
    ]


def _taken() -> statetimeline.Panel:
    names: dict[str, Any] = {
        "0": model.ValueMappingResult(text=" ", color="transparent", index=0),
        "1": model.ValueMappingResult(text="taken", color=GREEN, index=1),
    }
    return (
        statetimeline.Panel()
        .title("Taken")
        .description("Which way the batches had, over time.")
        .datasource(DATASOURCE)
        .with_target(target(f"max by (way) ({metric('grouping_taken')})", "{{way}}"))
        .span(12)
        .height(7)
        .unit("none")
        .mappings([model.ValueMap(options=names)])
        .merge_values(True)
        .show_value(shared.VisibilityMode.NEVER)
        .row_height(0.8)
        .span_nulls(GAP_MILLISECONDS)
        .legend(parts.VizLegendOptions().show_legend(False))
    )
