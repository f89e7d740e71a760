"""Paper 000's cluster: latency and throughput, figures 18 and 19."""

from benchmarks.papers.definitions import (
    Extreme,
    Measure,
    Plot,
    Printed,
    Ratio,
    Row,
    Run,
    Saving,
    Value,
)
from benchmarks.papers.tables.fish.parts import ASSUMED, QUICK, REAL

NAMES = {
    "key": "FG",
    "partial_key": "PKG",
    "d_choices": "D-C",
    "w_choices": "W-C",
    "fish": "FISH",
    "shuffle": "SG",
}
_WHERE = "section 6.6"
_OWN = (
    "a closed loop of 32 sources with 100 records under way each and 1 ms a record: the paper"
    " prints neither, and its latencies include its cluster's other stages"
)


def storm(grouping: str, name: str, n: int = 128) -> Run:
    """The cluster: 32 sources, a closed loop."""
    return Run(grouping, REAL[name], n, 32, "--cost-us 1000 --pending 100", QUICK)


def _latency_rows() -> tuple[Row, ...]:
    def saved(figure: str, name: str) -> Measure:
        return Saving(Value(storm("fish", name), figure), Value(storm("w_choices", name), figure))

    printed = (("MT", "p50", 7.0), ("MT", "p99", 562.0), ("AM", "p50", 9.0), ("AM", "p99", 640.0))
    savings = {"mean": ("latency_mean_ms", 87.12), "p99": ("latency_p99_ms", 76.34)}
    return (
        *(
            Row(
                "fig. 18",
                f"{name}: {what} latency saved over W-Choices, percent",
                Printed(f"up to {value:g}", _WHERE, value),
                saved(figure, name),
                ASSUMED,
            )
            for name in REAL
            for what, (figure, value) in savings.items()
        ),
        *(
            Row(
                "fig. 18",
                f"{name}: {what} latency of FISH, ms",
                Printed(f"{value:g}", _WHERE, value),
                Value(storm("fish", name), f"latency_{what}_ms"),
                _OWN,
            )
            for name, what, value in printed
        ),
        *(
            Row(
                "fig. 18",
                f"{name}: {what} latency, FISH over SG",
                Printed("almost ideal", _WHERE, 1.0),
                Ratio(
                    Value(storm("fish", name), f"latency_{what}_ms"),
                    Value(storm("shuffle", name), f"latency_{what}_ms"),
                ),
                "SG's queues are as even as they can be; FISH's hot keys wait for each other",
            )
            for name in REAL
            for what in ("p50", "p99")
        ),
    )


def _over(top: str, bottom: str, name: str) -> Measure:
    rate = "throughput_per_second"
    return Ratio(Value(storm(top, name), rate), Value(storm(bottom, name), rate))


def _throughput_rows() -> tuple[Row, ...]:
    gains = {"w_choices": 1.32, "d_choices": 1.48}
    return (
        *(
            Row(
                "fig. 19",
                f"throughput over {NAMES[rival]}, better of MT and AM",
                Printed(f"{value:g}", _WHERE, value),
                Extreme(tuple(_over("fish", rival, name) for name in REAL)),
                ASSUMED,
            )
            for rival, value in gains.items()
        ),
        *(
            Row(
                "fig. 19",
                f"{name}: records a second, FG",
                Printed(f"{value:,.0f}", _WHERE, value),
                Value(storm("key", name), "throughput_per_second"),
                f"{ASSUMED}; 1 ms a record is assumed, too",
            )
            for name, value in (("MT", 30_000.0), ("AM", 23_000.0))
        ),
        *(
            Row(
                "fig. 19",
                f"{name}: throughput of {NAMES[grouping]} over SG's",
                Printed("close to the ideal", _WHERE, 1.0)
                if grouping == "fish"
                else Printed("plot only", _WHERE),
                _over(grouping, "shuffle", name),
            )
            for name in REAL
            for grouping in NAMES
            if grouping != "shuffle"
        ),
    )


CLUSTER_ROWS = (*_latency_rows(), *_throughput_rows())
CLUSTER_PLOTS = tuple(
    Plot(
        f"000-fig18-{name}",
        f"Fig. 18: {name}, latency of the fastest so many percent",
        "percent of the records",
        "ms",
        {
            label: tuple(
                (percent, Value(storm(grouping, name), f"latency_p{percent}_ms"))
                for percent in (50, 95, 99)
            )
            for grouping, label in NAMES.items()
        },
    )
    for name in REAL
)
