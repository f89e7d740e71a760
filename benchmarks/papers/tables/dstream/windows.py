"""Paper 002's latencies over time, in streams whose keys change: figures 10, 13 and 16."""

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
_APPLICATIONS = {"TW": ("10", "word count"), "ST": ("13", "VWAP"), "HA": ("16", "hashtags")}
_WHERE = "section VI-B"


def drifting(grouping: str, name: str) -> Run:
    """A stream like one of the applications' with keys that change, in the closed loop."""
    trace = f"{DRIFTING[name]},records={RECORDS}"
    more = f"--cost-us 100 --pending {PENDING} --points {WINDOWS}"
    return Run(grouping, trace, WIDTH, 1, more, QUICK, tuple(_KINDS.values()))


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


WINDOW_ROWS = _rows()
WINDOW_PLOTS = tuple(
    Plot(
        f"002-fig{number}",
        f"Fig. {number}: {what}, latency by window, keys changing",
        "records",
        "ms",
        {
            f"{label}, {kind}": points_of(
                drifting(grouping, name),
                series,
                RECORDS / WINDOWS,
                RECORDS / WINDOWS,
                WINDOWS,
            )
            for grouping, label in NAMES.items()
            for kind, series in _KINDS.items()
        },
    )
    for name, (number, what) in _APPLICATIONS.items()
)
