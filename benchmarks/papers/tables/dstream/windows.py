"""Paper 002 over time, in streams whose keys change.

Throughput (figures 8, 11, 14), latency (10, 13, 16).
"""

from functools import partial

from benchmarks.papers.definitions import (
    Derived,
    Extreme,
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
from benchmarks.papers.tables.dstream.times import (
    DRIFTING,
    NAMES,
    PENDING,
    QUICK,
    RECORDS,
    WIDTH,
)

WINDOWS = 8
"""As many as five minutes are in forty."""
_KINDS = {"p50": "over_time.window_latency_p50_ms", "p99": "over_time.window_latency_p99_ms"}
_SECONDS = "over_time.execution_seconds"
_APPLICATIONS = {"TW": ("10", "word count"), "ST": ("13", "VWAP"), "HA": ("16", "hashtags")}
_RATES = {"TW": "8", "ST": "11", "HA": "14"}
"""The figures of throughput."""
_WHERE = "section VI-B"


def drifting(grouping: str, name: str) -> Run:
    """A stream like one of the applications' with keys that change, in the closed loop."""
    trace = f"{DRIFTING[name]},records={RECORDS}"
    more = f"--cost-us 100 --pending {PENDING} --points {WINDOWS}"
    return Run(grouping, trace, WIDTH, 1, more, QUICK, (*_KINDS.values(), _SECONDS))


def _values(kind: str, figures: Figures) -> list[float]:
    return [figures[f"{_KINDS[kind]}.{window}"] for window in range(WINDOWS)]


def _spread(kind: str, figures: Figures) -> float:
    # Before anything is learned the first window is all groupings' worst.
    values = _values(kind, figures)[1:]
    return max(values) / min(values)


def _worst(name: str, rival: str, kind: str) -> Measure:
    return Extreme(
        tuple(
            Ratio(
                Value(drifting("dstream", name), f"{_KINDS[kind]}.{window}"),
                Value(drifting(rival, name), f"{_KINDS[kind]}.{window}"),
            )
            for window in range(WINDOWS)
        )
    )


def _rows() -> tuple[Row, ...]:
    rows = []
    for name, (number, what) in _APPLICATIONS.items():
        rows += [
            Row(
                f"fig. {number}",
                f"{what}: {kind} latency, DStream over {NAMES[rival]}, worst of {WINDOWS} windows",
                Printed("the lowest at every percentile", _WHERE, 1.0, "at most"),
                _worst(name, rival, kind),
                "the median record waits for a worker that is not the fullest: where a rival keeps"
                " all others nearly idle, its median is lower",
            )
            for rival in ("partial_key", "distribution_aware")
            for kind in _KINDS
        ]
        rows += [
            Row(
                f"fig. {number}",
                f"{what}: p99 latency, highest over lowest window after the first, {label}",
                Printed("stable" if grouping == "dstream" else "varies significantly", _WHERE),
                Derived(drifting(grouping, name), partial(_spread, "p99")),
            )
            for grouping, label in NAMES.items()
        ]
    return tuple(rows)


def _rate(window: int, figures: Figures) -> float:
    began = figures[f"{_SECONDS}.{window - 1}"] if window else 0.0
    return RECORDS / WINDOWS / (figures[f"{_SECONDS}.{window}"] - began)


def _rate_plot(name: str) -> Plot:
    what = _APPLICATIONS[name][1]
    return Plot(
        f"002-fig{_RATES[name]}",
        f"Fig. {_RATES[name]}: {what}, throughput by window, keys changing",
        "records",
        "records a second",
        {
            label: tuple(
                (
                    RECORDS / WINDOWS * (window + 1),
                    Derived(drifting(grouping, name), partial(_rate, window)),
                )
                for window in range(WINDOWS)
            )
            for grouping, label in NAMES.items()
        },
    )


def _latency_plot(name: str) -> Plot:
    number, what = _APPLICATIONS[name]
    step = RECORDS / WINDOWS
    return Plot(
        f"002-fig{number}",
        f"Fig. {number}: {what}, latency by window, keys changing",
        "records",
        "ms",
        {
            f"{label}, {kind}": points_of(drifting(grouping, name), series, step, step, WINDOWS)
            for grouping, label in NAMES.items()
            for kind, series in _KINDS.items()
        },
    )


WINDOW_ROWS = _rows()
WINDOW_PLOTS = (
    *(_rate_plot(name) for name in _APPLICATIONS),
    *(_latency_plot(name) for name in _APPLICATIONS),
)
