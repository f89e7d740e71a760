"""How simulations show themselves: a progress bar, a table, a plot."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from unskew.grouping.simulation.meters.streams import simulate_streams
from unskew.grouping.simulation.reports import SimulationReport
from unskew.grouping.simulation.simulate import Progress as Report_Progress
from unskew.jobs.commands.simulation.compiling import announce_compiling, compile_kernels
from unskew.jobs.commands.simulation.options import Experiment
from unskew.jobs.local.terminal_tables import make_console, print_fitting

_NAME = "grouping"


def run_all(experiment: Experiment) -> list[SimulationReport]:
    """Simulate every grouping in turn, with a live bar on a terminal."""
    reports = []
    with _bars(len(experiment.groupings)) as bars, announce_compiling():
        for spec in experiment.groupings:
            update = _add_task(bars, spec.name, experiment.trace.records)
            compile_kernels(spec, experiment.scenario)
            reports.append(
                simulate_streams(
                    experiment.trace,
                    experiment.trace_spec,
                    spec,
                    experiment.scenario,
                    time.perf_counter,
                    update,
                )
            )
    return reports


def print_table(experiment: Experiment, reports: Sequence[SimulationReport]) -> None:
    """Print a row for each grouping."""
    first = reports[0]
    console = make_console()
    console.print(
        f"{experiment.trace_spec}: {first.records:,} records, {first.distinct_keys:,} keys;"
        f" {first.head_keys:,} of them are the head with {first.head_share:.1%} of the records;"
        f" {first.partitions} partitions, {first.sources} sources",
        markup=False,
    )
    rows = [_format_cells(report) for report in reports]
    print_fitting(console, list(rows[0]), [list(row.values()) for row in rows])


def draw(path: str, experiment: Experiment, reports: Sequence[SimulationReport]) -> None:
    """Loads, and the figures over time, into a PNG file."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    timed = reports[0].execution is not None
    panels = ["window_max_over_mean", "replication"] + ["window_latency_p99_ms"] * timed
    figure = Figure(figsize=(9, 3 * (len(panels) + 1)), layout="constrained")
    axes = figure.subplots(len(panels) + 1)
    figure.suptitle(
        f"{experiment.trace_spec}, {reports[0].partitions} partitions, {reports[0].sources} sources"
    )
    for report in reports:
        fair = report.records / report.partitions
        loads = [load / fair for load in sorted(report.loads, reverse=True)]
        axes[0].plot(
            range(1, len(loads) + 1), loads, label=_make_label(report), drawstyle="steps-mid"
        )
        for axis, name in zip(axes[1:], panels, strict=True):
            axis.plot(report.over_time.records, getattr(report.over_time, name))
    axes[0].set(xlabel="partitions, fullest first", ylabel="load over mean")
    axes[0].legend()
    for axis, name in zip(axes[1:], panels, strict=True):
        axis.set(xlabel="records", ylabel=name.replace("_", " "))
        axis.set_yscale("log")
    figure.savefig(path, dpi=120)


def _format_cells(report: SimulationReport) -> dict[str, str]:
    cells = {
        _NAME: _make_label(report),
        "max/mean": f"{report.max_over_mean:.3f}",
        "imbalance": f"{report.imbalance:.2e}",
        "stddev %": f"{report.stddev:.3g}",
        "pairs": f"{report.pairs:,}",
        "replication": f"{report.replication:.3f}",
    }
    if report.batches.count > 1:
        cells["batch max/mean"] = f"{report.batches.max_over_mean_mean:.3f}"
        if report.batches.makespan_seconds_p50 is not None:
            cells["makespan s"] = f"{report.batches.makespan_seconds_p50:.3g}"
    if report.execution is not None:
        cells["execution s"] = f"{report.execution.execution_seconds:.4g}"
        cells["records/s"] = f"{report.execution.throughput_per_second:,.0f}"
        cells["mean ms"] = f"{report.execution.latency_mean_ms:.4g}"
        cells["p50 ms"] = f"{report.execution.latency_p50_ms:.4g}"
        cells["p99 ms"] = f"{report.execution.latency_p99_ms:.4g}"
    cells["routed M/s"] = f"{report.routing_records_per_second / 1e6:,.1f}"
    return cells


def _make_label(report: SimulationReport) -> str:
    options = ",".join(f"{name}={value}" for name, value in report.options.items())
    return f"{report.grouping}:{options}" if options else report.grouping


@contextmanager
def _bars(count: int) -> Iterator[Progress]:
    bars = Progress(
        TextColumn("{task.description:28}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("max/mean {task.fields[ratio]:.3f}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty() or count == 0,
    )
    with bars:
        yield bars


def _add_task(bars: Progress, name: str, records: int) -> Report_Progress:
    # A first use compiles the grouping's kernels, for seconds, before anything is routed.
    task = bars.add_task(f"compiling {name}", total=records, ratio=1.0)

    def update(done: int, ratio: float) -> None:
        bars.update(task, description=name, completed=done, ratio=ratio)

    return update
