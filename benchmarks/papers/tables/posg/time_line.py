"""Paper 004's figures 10 and 11: how POSG begins, and how it adapts when instances change."""

from collections.abc import Callable
from functools import partial

from benchmarks.papers.definitions import (
    Derived,
    Figures,
    Measure,
    Plot,
    Printed,
    Ratio,
    Row,
    Run,
    Value,
    points_of,
)

RECORDS, TURN = 150_000, 75_000
AT_FIRST = "posg:tolerance=1,lift=false"
LITERAL = "posg:tolerance=0.05,lift=false"
REPORTED = "posg:tolerance=1,synchronise=reports"
_SPEEDS = (
    "--speeds 0.952381,0.97561,1,1.025641,1.052632"
    f" --speeds {TURN}:1.111111,1.052632,1,0.952381,0.909091"
)
"""What makes each instance's times 1.05, 1.025, 1, 0.975, 0.95 times those of the keys, and then
0.9, 0.95, 1, 1.05, 1.1."""
_FINE, _COARSE = 500, 2000
"""Records from one point to the next: to find a record, and as the paper's plot has them."""
_LATENCIES = tuple(f"over_time.window_latency_{which}_ms" for which in ("mean", "least", "most"))
_MATRICES = "over_time.signals.matrices_received"
_WHERE = "section V-B"
_PROTOTYPE = "the paper's prototype on a cluster; ours is the simulator's, as for fig. 10"
_SLOW = (
    "after two windows of each instance the relative error is still 0.09: a run that begins at"
    " 10,690 has sent at its first check"
)


def line(grouping: str, step: int, *series: str) -> Run:
    """The stream whose instances change in the middle."""
    more = f"--utilisation 1 --reports completed --feedback-records 64 {_SPEEDS}"
    points = f"--points {RECORDS // step}"
    trace = f"posg-costs:z=1,records={RECORDS}"
    return Run(grouping, trace, 5, 1, f"{more} {points}", series=series)


def _first_matrices(figures: Figures) -> float:
    """The record after the change up to which new matrices have come; the last if none have."""
    point = TURN // _FINE - 1
    before = figures[f"{_MATRICES}.{point}"]
    while figures[f"{_MATRICES}.{point}"] <= before and (point + 1) * _FINE < RECORDS:
        point += 1
    return float((point + 1) * _FINE)


def _mean_between(begin: int, end: int, figures: Figures) -> float:
    points = range(begin // _COARSE, end // _COARSE)
    return sum(figures[f"{_LATENCIES[0]}.{point}"] for point in points) / len(points)


def _faster(begin: int, end: int, grouping: str) -> Measure:
    def of(name: str) -> Measure:
        mean: Callable[[Figures], float] = partial(_mean_between, begin, end)
        return Derived(line(name, _COARSE, *_LATENCIES), mean)

    return Ratio(of("shuffle"), of(grouping))


def _beginnings() -> tuple[Row, ...]:
    def run_from(grouping: str) -> Measure:
        run = line(grouping, _FINE, _MATRICES)
        return Value(run, "over_time.signals.scheduler_state.highest_at")

    def renewed(grouping: str) -> Measure:
        return Derived(line(grouping, _FINE, _MATRICES), _first_matrices)

    begins = "the record with which RUN begins, matrices sent at the first check (to 500 records)"
    recovers = "the record after the change with which matrices have come, sent at the first check"
    return (
        Row("fig. 10", begins, Printed("10,690", _WHERE, 10_690.0), run_from(AT_FIRST)),
        Row(
            "fig. 10",
            "the same with the paper's mu = 0.05",
            Printed("10,690", _WHERE, 10_690.0),
            run_from(LITERAL),
            _SLOW,
        ),
        Row("fig. 10", recovers, Printed("84,912", _WHERE, 84_912.0), renewed(AT_FIRST)),
        Row(
            "fig. 10",
            "the same with the paper's mu = 0.05",
            Printed("84,912", _WHERE, 84_912.0),
            renewed(LITERAL),
            _SLOW,
        ),
        Row(
            "fig. 11",
            begins,
            Printed("20,978", "section V-C", 20_978.0),
            run_from(AT_FIRST),
            _PROTOTYPE,
        ),
        Row(
            "fig. 11",
            recovers,
            Printed("82,311", "section V-C", 82_311.0),
            renewed(AT_FIRST),
            _PROTOTYPE,
        ),
    )


def _phases() -> tuple[Row, ...]:
    phases = (
        ("before RUN, records to 10,000", 0, 10_000, "the same results", 1.0),
        ("in RUN, records 12,000 to 74,000", 12_000, 74_000, "better", None),
        ("after the change, records 76,000 to 84,000", 76_000, 84_000, "degrades", None),
        ("from 86,000 on", 86_000, RECORDS, "recovers", None),
    )
    return tuple(
        Row(
            "fig. 10",
            f"round robin's mean time over POSG's {what}, matrices sent at the first check",
            Printed(text, _WHERE, value),
            _faster(begin, end, AT_FIRST),
        )
        for what, begin, end, text, value in phases
    )


def _plot(grouping: str, label: str, number: int) -> Plot:
    count = RECORDS // _COARSE
    kinds = dict(zip(("mean", "least", "most"), _LATENCIES, strict=True))
    return Plot(
        f"004-fig10-{number}",
        f"Fig. 10: completion times of each 2,000 records, POSG {label}",
        "records",
        "ms",
        {
            f"{who}, {kind}": points_of(
                line(name, _COARSE, *_LATENCIES), series, _COARSE, _COARSE, count
            )
            for who, name in (("round robin", "shuffle"), ("POSG", grouping))
            for kind, series in kinds.items()
            if kind != "least"
        },
    )


TIME_ROWS = (*_beginnings(), *_phases())
TIME_PLOTS = (
    _plot(AT_FIRST, "with matrices sent at the first check", 1),
    _plot(REPORTED, "synchronised by reports", 2),
)
