"""Paper 003's scaling out and down over time."""

from benchmarks.papers.definitions import (
    Derived,
    Measure,
    Plot,
    Printed,
    Row,
    Run,
    Value,
    points_of,
)

NAMES = {"shuffle": "SG", "key": "KG", "partial_key": "PKG", "dynamic_key": "DKG"}
RATE, SECONDS, STEP = 5000, 400, 5
POINTS = SECONDS // STEP
_TIMES = ("window_stddev", "window_latency_mean_ms", "throughput_per_second")
_WIDTHS = ("width_max", "wide_keys")


def turning(grouping: str) -> Run:
    """From the middle on hot keys are cold and cold ones hot; half of the capacity is used."""
    trace = f"zipf-drift:z=2,keys=204,records={RATE * SECONDS},runs=1,drift_share=0.5"
    more = f"--cost-us 1000 --arrival-per-second {RATE} --point-seconds {STEP}"
    signals = tuple(f"signals.{name}" for name in _WIDTHS) if grouping == "dynamic_key" else ()
    series = tuple(f"over_time.{name}" for name in (*_TIMES, *signals))
    return Run(grouping, trace, 10, 5, more, series=series)


def _width_at(second: int) -> Measure:
    point = second // STEP - 1
    name = f"over_time.signals.width_max.{point}"
    return Value(turning("dynamic_key"), name)


def _scaling() -> tuple[Row, ...]:
    own = turning("dynamic_key")
    where = "sections 4.4 to 4.6"
    cycles = "a key is old after 15 and 60 s at most, and then gets one machine after the other"
    return (
        Row(
            "scale-out",
            "z = 2: seconds until DKG's widest key has all the machines that it ever gets",
            Printed(cycles, where),
            Derived(own, lambda figures: figures["over_time.signals.width_max.highest_at"] / RATE),
        ),
        *(
            Row(
                "scale-out" if second <= SECONDS // 2 else "scale-down",
                f"z = 2, other keys hot from {SECONDS // 2} s on: DKG's most machines of a key at"
                f" {second} s",
                Printed("8 at most", "table 1", 8.0, "at most"),
                _width_at(second),
            )
            for second in (50, 200, 250, 400)
        ),
    )


def _plots() -> tuple[Plot, ...]:
    titles = {
        "window_stddev": "standard deviation of load, percent",
        "window_latency_mean_ms": "mean latency, ms",
        "throughput_per_second": "records a second since the beginning",
    }
    lines = (
        Plot(
            f"003-scaling-{name.split('_')[1]}",
            f"Scaling out and down, by {STEP} s: {titles[name]}",
            "seconds",
            titles[name],
            {
                label: points_of(turning(grouping), f"over_time.{name}", STEP, STEP, POINTS)
                for grouping, label in NAMES.items()
            },
            log=name == "window_latency_mean_ms",
        )
        for name in _TIMES
    )
    widths = Plot(
        "003-scaling-widths",
        "Scaling out and down: DKG's machines",
        "seconds",
        "machines, or keys",
        {
            label: points_of(
                turning("dynamic_key"), f"over_time.signals.{name}", STEP, STEP, POINTS
            )
            for name, label in zip(
                _WIDTHS, ("of the widest key", "keys with 3 or more"), strict=True
            )
        },
        log=False,
    )
    return (*lines, widths)


SCALING_ROWS = _scaling()
SCALING_PLOTS = _plots()
