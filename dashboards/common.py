"""What both dashboards share: panels in one style, variables, annotations and links."""

import json
from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, heatmap, prometheus, stat
from grafana_foundation_sdk.builders import timeseries as lines
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

OVERVIEW_UID = "unskew-overview"
PARTITIONS_UID = "unskew-partitions"
TAG = "unskew"
DATASOURCE = shared.DataSourceRef(type_val="prometheus", uid="${datasource}")
SELECTION = 'cluster="$cluster",query=~"$job",instance=~"$instance"'
"""The matchers of both dashboards: an Unskew job is the label `query` of its metrics.

Jobs of one name in two clusters are two jobs, so one cluster is chosen. Where targets have no such
label the variable is empty, and an empty text is what an absent label equals.
"""
LINK_VALUES = (
    "${datasource:queryparam}&${cluster:queryparam}&${instance:queryparam}&${__url_time_range}"
)

GREEN, ORANGE, RED, BLUE, GREY = "green", "orange", "red", "blue", "text"
BARS_MAX = 1000
STEP = "30s"
"""The shortest interval of rates: counters change only when a batch ends."""
GAP_MILLISECONDS = 600_000
"""Gaps up to this length are bridged: values of batches come only when a batch ends."""
Steps = tuple[tuple[float | None, str], ...]
STRETCH_STEPS: Steps = ((None, GREEN), (1.25, ORANGE), (2, RED))
"""Thresholds of a ratio to the mean: a quarter above it is visible in a batch's time."""
COST_STEPS: Steps = ((None, GREEN), (0.1, ORANGE), (0.3, RED))
"""Thresholds of the share of a batch's time that balance would save."""


def metric(name: str, *matchers: str) -> str:
    """Select a metric of the selected jobs."""
    return f"unskew_{name}{{{','.join((SELECTION, *matchers))}}}"


def rate(name: str, *matchers: str) -> str:
    """Compute a counter's increase a second."""
    return f"rate({metric(name, *matchers)}[$__rate_interval])"


def quantile(share: float, name: str, *by: str) -> str:
    """Compute a quantile of a histogram; no value, rather than NaN, where it is empty."""
    counts = f"sum by (le, {', '.join(by)}) ({rate(f'{name}_bucket')})"
    return f"histogram_quantile({share}, {counts}) >= 0"


def sort_by_partition(expression: str) -> str:
    """Add a label by which Prometheus sorts partitions as numbers: their number of digits."""
    for digits in range(1, 5):
        pattern = "." * digits
        expression = f'label_replace({expression}, "digits", "{digits}", "partition", "{pattern}")'
    return expression


def target(expression: str, legend: str = "", ref_id: str = "A") -> prometheus.Dataquery:
    """A query over the dashboard's time range."""
    query = prometheus.Dataquery().datasource(DATASOURCE).expr(expression).ref_id(ref_id)
    query = query.range().format(PromQueryFormat.TIME_SERIES)
    return query.editor_mode(QueryEditorMode.CODE).legend_format(legend)


def table_target(expression: str, ref_id: str = "A") -> prometheus.Dataquery:
    """A query of one moment, one row a series."""
    query = prometheus.Dataquery().datasource(DATASOURCE).expr(expression).ref_id(ref_id)
    return query.instant().format(PromQueryFormat.TABLE).editor_mode(QueryEditorMode.CODE)


def merge_tables(
    hidden: Sequence[str], names: dict[str, str], first: Sequence[str] = ()
) -> list[model.DataTransformerConfig]:
    """Merge the tables of several queries by the labels that they share."""
    look = {
        "excludeByName": dict.fromkeys(hidden, True),
        "indexByName": {name: index for index, name in enumerate(first)},
        "renameByName": names,
    }
    return [
        model.DataTransformerConfig(id_val="merge", options={}),
        model.DataTransformerConfig(id_val="organize", options=look),
    ]


def targets(*pairs: tuple[str, str]) -> list[Any]:
    """Queries with their legends."""
    return [
        target(expression, legend, chr(ord("A") + number))
        for number, (expression, legend) in enumerate(pairs)
    ]


def thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    """Colours from a value on."""
    built = [model.Threshold(value=value, color=colour) for value, colour in steps]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(built)


def colour_scheme(mode: model.FieldColorModeId, colour: str | None = None) -> dashboard.FieldColor:
    """How values are coloured."""
    scheme = dashboard.FieldColor().mode(mode)
    return scheme if colour is None else scheme.fixed_color(colour)


def override(**options: Any) -> list[model.DynamicConfigValue]:
    """Properties of some fields, `custom_x` for `custom.x`."""
    return [
        model.DynamicConfigValue(id_val=name.replace("custom_", "custom."), value=value)
        for name, value in options.items()
    ]


def fixed(colour: str) -> dict[str, str]:
    """A colour of a field's own, for an override."""
    return {"mode": "fixed", "fixedColor": colour}


def single_value(
    title: str, description: str, expression: str, unit: str, steps: Steps, width: int = 4
) -> stat.Panel:
    """A panel with one large number."""
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .with_target(target(expression, title))
        .span(width)
        .height(4)
        .interval(STEP)
        .unit(unit)
        .thresholds(thresholds(steps))
        .color_scheme(colour_scheme(model.FieldColorModeId.THRESHOLDS))
        .color_mode(shared.BigValueColorMode.VALUE)
        .graph_mode(shared.BigValueGraphMode.NONE)
        .text_mode(shared.BigValueTextMode.VALUE)
        .reduce_options(reduce)
    )


def time_series(
    title: str, description: str, unit: str, *pairs: tuple[str, str], width: int = 8
) -> lines.Panel:
    """Lines over time; the legend has the last and the greatest value."""
    many = len(pairs) > 1 and any("{{" in legend for _, legend in pairs)
    legend = (
        common.VizLegendOptions()
        .display_mode(shared.LegendDisplayMode.LIST if many else shared.LegendDisplayMode.TABLE)
        .placement(shared.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull"] if many else ["lastNotNull", "max"])
    )
    tooltip = common.VizTooltipOptions().mode(shared.TooltipDisplayMode.MULTI)
    panel = lines.Panel()
    if any("$__rate_interval" in expression for expression, _ in pairs):
        panel = panel.interval(STEP)
    return (
        panel.title(title)
        .description(description)
        .datasource(DATASOURCE)
        .targets(targets(*pairs))
        .span(width)
        .height(9)
        .unit(unit)
        .min(0)
        .color_scheme(colour_scheme(model.FieldColorModeId.PALETTE_CLASSIC))
        .line_width(2)
        .fill_opacity(8)
        .show_points(shared.VisibilityMode.NEVER)
        .span_nulls(GAP_MILLISECONDS)
        .legend(legend)
        .tooltip(tooltip.sort(shared.SortOrder.DESCENDING))
    )


def with_dashed_thresholds(panel: lines.Panel, steps: Steps) -> lines.Panel:
    """The panel with its thresholds as dashed lines."""
    style = common.GraphThresholdsStyleConfig().mode(shared.GraphThresholdsStyleMode.DASHED)
    return panel.thresholds(thresholds(steps)).thresholds_style(style)


def stacked(panel: lines.Panel, bars: bool = False) -> lines.Panel:
    """The panel with its series on top of each other."""
    panel = panel.stacking(common.StackingConfig().mode(shared.StackingMode.NORMAL))
    if bars:
        panel = panel.draw_style(shared.GraphDrawStyle.BARS).line_width(0)
    return panel.fill_opacity(70 if bars else 35)


def _sort_rows(by: str) -> list[model.DataTransformerConfig]:
    """Sorts rows by a label whose values are numbers."""
    options: list[tuple[str, dict[str, Any]]] = [
        ("convertFieldType", {"conversions": [{"targetField": by, "destinationType": kind}]})
        for kind in ("number", "string")
    ]
    options.insert(1, ("sortBy", {"sort": [{"field": by, "desc": False}]}))
    return [
        model.DataTransformerConfig(id_val=name, options={"fields": {}, **settings})
        for name, settings in options
    ]


def bar_gauge(
    title: str, description: str, unit: str, expression: str, by: str, steps: Steps
) -> bargauge.Panel:
    """A bar for each value of a label as of now, sorted by number."""
    reduce = common.ReduceDataOptions().calcs(["lastNotNull"]).values(True).limit(BARS_MAX)
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .with_target(table_target(expression))
        .transformations(_sort_rows(by))
        .span(12)
        .height(9)
        .unit(unit)
        .min(0)
        .thresholds(thresholds(steps))
        .color_scheme(colour_scheme(model.FieldColorModeId.THRESHOLDS))
        .display_mode(shared.BarGaugeDisplayMode.BASIC)
        .value_mode(shared.BarGaugeValueMode.COLOR)
        .show_unfilled(True)
        .orientation(shared.VizOrientation.VERTICAL)
        .min_viz_width(8)
        .reduce_options(reduce)
    )


def partition_heatmap(
    title: str, description: str, unit: str, expression: str, scheme: str, most: float | None = None
) -> heatmap.Panel:
    """A heatmap with a row for each partition; brighter is more."""
    colour = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme(scheme)
    colour = colour.steps(64).min(0)
    axis = heatmap.YAxisConfig().axis_placement(shared.AxisPlacement.LEFT)
    tooltip = heatmap.HeatmapTooltip().mode(shared.TooltipDisplayMode.SINGLE)
    panel = heatmap.Panel()
    if "$__rate_interval" in expression:
        panel = panel.interval(STEP)
    return (
        panel.title(title)
        .description(description)
        .datasource(DATASOURCE)
        .with_target(target(sort_by_partition(expression), "{{partition}}"))
        .span(12)
        .height(9)
        .calculate(False)
        .cell_gap(0)
        .cell_values(heatmap.CellValues().unit(unit))
        .color(colour if most is None else colour.max(most))
        .y_axis(axis.axis_label("partition"))
        .tooltip(tooltip.show_color_scale(True))
        .show_legend()
    )


def _variables(many: bool) -> list[Any]:
    """The data source, the cluster, the job and its instances."""
    query = {"qryType": 1, "refId": "PrometheusVariableQueryEditor-VariableQuery"}
    cluster = "label_values(unskew_query_info, cluster)"
    job = 'label_values(unskew_query_info{cluster="$cluster"}, query)'
    instance = 'label_values(unskew_query_info{cluster="$cluster",query=~"$job"}, instance)'
    everything = model.VariableOption(selected=True, text="All", value="$__all")
    variables: list[Any] = []
    for name, label, definition, description, several in (
        ("cluster", "Cluster", cluster, "The label `cluster` of targets, if they have it.", False),
        ("job", "Job", job, "The name in the job's YAML: the metrics' label `query`.", many),
        ("instance", "Instance", instance, "The driver's address, as Prometheus has it.", True),
    ):
        variable = (
            dashboard.QueryVariable(name)
            .label(label)
            .description(description)
            .datasource(DATASOURCE)
            .query({**query, "query": definition})
            .definition(definition)
            .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(model.VariableSort.ALPHABETICAL_ASC)
            .multi(several)
            .include_all(several)
        )
        variables.append(variable.all_value(".*").current(everything) if several else variable)
    source = dashboard.DatasourceVariable("datasource").label("Data source")
    return [
        source.type("prometheus").description("The Prometheus that scrapes the jobs."),
        *variables,
    ]


def _annotations() -> list[Any]:
    """Marks at the start times that the processes export, and while a query failed or stalled."""
    failing_states = 'state=~"failed|stalled"'
    start = (
        dashboard.AnnotationQuery()
        .name("Starts")
        .expr(f"max by (query, instance) ({metric('query_start_timestamp_seconds')}) * 1000")
        .use_value_for_time(True)
        .title_format("{{query}} started")
        .icon_color(BLUE)
    )
    failing = (
        dashboard.AnnotationQuery()
        .name("Failed or stalled")
        .expr(f"max by (query, instance, state) ({metric('query_state', failing_states)}) == 1")
        .title_format("{{query}} {{state}}")
        .icon_color(RED)
    )
    return [
        annotation.datasource(DATASOURCE).enable(True).text_format("{{instance}}").step("10s")
        for annotation in (start, failing)
    ]


def link_to(uid: str, title: str) -> dashboard.DashboardLink:
    """A link at the top that keeps time and variables."""
    return (
        dashboard.DashboardLink(title)
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{uid}")
        .icon("dashboard")
        .tooltip(title)
        .include_vars(True)
        .keep_time(True)
    )


def page(uid: str, title: str, description: str, many: bool) -> dashboard.Dashboard:
    """Make a dashboard with everything but its panels."""
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .editable()
        .timezone("browser")
        .time("now-30m", "now")
        .refresh("10s")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .variables(_variables(many))
        .annotations(_annotations())
    )


def with_rows(empty: dashboard.Dashboard, *rows: tuple[str, Sequence[Any]]) -> dashboard.Dashboard:
    """Add rows to a dashboard: a title and panels each."""
    for title, panels in rows:
        empty = empty.with_row(dashboard.Row(title))
        for panel in panels:
            empty = empty.with_panel(panel)
    return empty


def text_of(built: dashboard.Dashboard) -> str:
    """Write the dashboard as JSON, with links at the top of the page."""
    page = json.loads(json.dumps(built.build(), cls=JSONEncoder))
    for number, panel in enumerate(page["panels"], 1):
        panel["id"] = number
    for item in (*page["links"], *page["annotations"]["list"]):
        del item["placement"]
    return json.dumps(page, indent=2, ensure_ascii=False) + "\n"
