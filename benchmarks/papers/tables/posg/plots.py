"""Paper 004's figures 4 to 9 and 12, as plots."""

import math

from benchmarks.papers.definitions import Plot, Value
from benchmarks.papers.tables.posg.runs import (
    FULL_KNOWLEDGE,
    INSTANCES,
    OVER,
    PRECISIONS,
    REPORTED,
    STREAMS,
    VARIANTS,
    ZIPFS,
    mean_time,
    precise,
    run,
    speed_up,
    tweets,
)


def _speed_ups() -> dict[str, str]:
    return {**VARIANTS, FULL_KNOWLEDGE: FULL_KNOWLEDGE}


def _by_distribution() -> tuple[Plot, ...]:
    return (
        Plot(
            "004-fig4",
            "Fig. 4: mean completion time, by distribution",
            "z of Zipf's law",
            "ms",
            {
                label: tuple((z, mean_time(name, f"z={z:g}")) for z in ZIPFS)
                for label, name in {"round robin": "shuffle", **_speed_ups()}.items()
            },
        ),
        Plot(
            "004-fig4-range",
            f"Fig. 4: least, mean and most of {STREAMS} streams' mean completion times",
            "z of Zipf's law",
            "ms",
            {
                f"{label}, {kind}": tuple(
                    (z, Value(run(name, f"z={z:g}"), f"{before}latency_mean_ms")) for z in ZIPFS
                )
                for label, name in (("round robin", "shuffle"), ("by reports", REPORTED))
                for kind, before in (("least", "least."), ("mean", ""), ("most", "most."))
            },
        ),
    )


def _by_setting() -> tuple[Plot, ...]:
    return (
        Plot(
            "004-fig5",
            "Fig. 5: speed-up over round robin, by provisioning",
            "capacity over arrivals",
            "speed-up",
            {
                label: tuple((over, speed_up(name, "z=1", over)) for over in OVER)
                for label, name in _speed_ups().items()
            },
            log=False,
        ),
        Plot(
            "004-fig8",
            "Fig. 8: speed-up over round robin, by instances",
            "instances",
            "speed-up",
            {
                label: tuple((k, speed_up(name, k=k)) for k in INSTANCES)
                for label, name in {
                    "synchronised by reports": REPORTED,
                    FULL_KNOWLEDGE: FULL_KNOWLEDGE,
                }.items()
            },
            log=False,
        ),
        Plot(
            "004-fig9",
            "Fig. 9: speed-up over round robin, by the precision of the sketches",
            "log10 of epsilon",
            "speed-up",
            {
                "synchronised by reports": tuple(
                    (math.log10(each), speed_up(precise(REPORTED, each))) for each in PRECISIONS
                )
            },
            log=False,
        ),
        Plot(
            "004-fig12",
            "Fig. 12: tweets, mean completion time, by instances",
            "instances",
            "ms",
            {
                label: tuple((k, Value(tweets(name, k), "latency_mean_ms")) for k in INSTANCES)
                for label, name in {"round robin": "shuffle", "by reports": REPORTED}.items()
            },
        ),
    )


def _plots_of_costs() -> tuple[Plot, ...]:
    grids = (
        ("6", "the largest cost", "cost_max", (16, 64, 256)),
        ("7", "the number of costs", "costs", (2, 16, 64, 1024)),
    )
    return tuple(
        Plot(
            f"004-fig{number}",
            f"Fig. {number}: mean completion time, by {what}",
            f"log2 of {what}",
            "ms",
            {
                label: tuple((math.log2(w), mean_time(name, f"{option}={w}")) for w in grid)
                for label, name in {"round robin": "shuffle", **_speed_ups()}.items()
            },
        )
        for number, what, option, grid in grids
    )


SPEED_PLOTS = (*_by_distribution(), *_plots_of_costs(), *_by_setting())
