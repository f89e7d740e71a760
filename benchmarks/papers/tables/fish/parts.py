"""Paper 000, FISH, its parts and its real streams: figures 9 and 15 to 19."""

from benchmarks.papers.definitions import (
    Derived,
    Extreme,
    Measure,
    Printed,
    Ratio,
    RealStream,
    Row,
    Run,
    Saving,
    Value,
)

RECORDS, QUICK = 5_000_000, 500_000
WIDTHS = (16, 32, 64, 128)
ZIPFS = (1.0, 1.4, 2.0)
COST_US = 100
REAL = {"MT": "memetracker-like:records=5000000", "AM": "amazon-like:records=5000000"}
REAL_STREAMS = (
    RealStream(
        "MT",
        REAL["MT"],
        "words of MemeTracker's quotes: the text of its lines that begin with Q",
        "text:path=FILE",
    ),
    RealStream(
        "AM",
        REAL["AM"],
        "reviewed films of SNAP's movies.txt: its lines product/productId, after the blank",
        "csv:path=FILE,column=2,separator=space",
    ),
)
REPORT_RECORDS = 100_000
_ASSUMED = (
    "its drift and skew are not printed; the trace's are assumed (z = 1, half of the keys new)"
)


def part(grouping: str, n: int, z: float, more: str = "") -> Run:
    """The ZF stream, arriving as fast as all workers together serve it, with frequent reports."""
    words = f"--cost-us {COST_US} --utilisation 1 --feedback-records {REPORT_RECORDS} {more}"
    trace = f"zipf-drift:z={z:g},keys=100000,records={RECORDS},runs=1"
    return Run(grouping, trace, n, 5, words.strip(), QUICK)


def real(grouping: str, name: str, n: int) -> Run:
    """A stream like one of its real ones, at full load."""
    return Run(grouping, REAL[name], n, 5, f"--cost-us {COST_US} --utilisation 1", QUICK)


def storm(grouping: str, name: str, n: int = 128) -> Run:
    """The cluster: 32 sources, a closed loop."""
    return Run(grouping, REAL[name], n, 32, "--cost-us 1000 --pending 100", QUICK)


def changed(placement: str, z: float, first: int, second: int, more: str = "") -> Run:
    """A worker more or less from the middle on."""
    words = f"--active {first} --active {RECORDS // 2}:{second} {more}".strip()
    trace = f"zipf-drift:z={z:g},keys=100000,records={RECORDS},runs=1"
    return Run(f"fish:placement={placement}", trace, 128, 5, words)


def _times(top: Run, bottom: Run) -> Ratio:
    return Ratio(Value(top, "execution_seconds"), Value(bottom, "execution_seconds"))


def _rule_rows() -> tuple[Row, ...]:
    where = "section 6.4"

    def saved(n: int) -> Measure:
        return Extreme(
            tuple(
                Saving(
                    Value(part("fish", n, z), "pairs"),
                    Value(part("fish:rule=w_choices", n, z), "pairs"),
                )
                for z in ZIPFS
            )
        )

    slower = Extreme(
        tuple(
            _times(part("fish:rule=d_choices", n, z), part("fish", n, z))
            for n in (64, 128)
            for z in ZIPFS
        )
    )
    return (
        *(
            Row(
                "fig. 15",
                f"memory CHK saves over W-Choices' rule, {n} workers, best of the skews, percent",
                Printed(f"up to {value:g}", where, value),
                saved(n),
            )
            for n, value in ((64, 25.23), (128, 45.34))
        ),
        Row(
            "fig. 15",
            "execution time, D-Choices' rule over CHK, worst of the skews, 64 and 128 workers",
            Printed("longer in some cases", where, 1.0, "at least"),
            slower,
        ),
    )


def _worker_rows() -> tuple[Row, ...]:
    gains = Extreme(
        tuple(
            _times(
                part("fish:assignment=records", n, z, "--speeds 1,2"),
                part("fish", n, z, "--speeds 1,2"),
            )
            for n in WIDTHS
            for z in ZIPFS
        )
    )

    changes = (("more", 127, 128), ("less", 128, 127))

    def doubled(first: int, second: int) -> Measure:
        return Ratio(
            Value(changed("modulo", 1.0, first, second), "pairs"),
            Value(changed("ring", 1.0, first, second), "pairs"),
        )

    return (
        Row(
            "fig. 16",
            "half of the workers twice as fast: time by records sent over time by waiting, best",
            Printed("up to 2.61", "section 6.4", 2.61),
            gains,
            "equal numbers of records leave the fast workers idle for half of the time: 1.5 at full"
            " load is all that there is to gain",
        ),
        *(
            Row(
                "fig. 17",
                f"memory without the ring over with it, z = 1.0, a worker {what}",
                Printed("almost twice", "section 6.5", 2.0),
                doubled(first, second),
            )
            for what, first, second in changes
        ),
        *(
            Row(
                "fig. 17",
                f"keys with a new worker in the second half, percent: {label}",
                Printed("not printed", "section 6.5"),
                Derived(
                    changed(placement, 1.0, first, second, "--keys-moved true"),
                    lambda figures: 100 * figures["keys_moved"] / figures["distinct_keys"],
                ),
            )
            for label, placement, first, second in (
                ("a worker more, with the ring", "ring", 127, 128),
                ("a worker more, with hashes modulo n", "modulo", 127, 128),
                (
                    "none more (hot keys spread, and cold ones use their other worker)",
                    "ring",
                    128,
                    128,
                ),
            )
        ),
    )


def _real_rows() -> tuple[Row, ...]:
    rows = []
    for name, first, last in (("MT", 1.19, 8.32), ("AM", 1.12, 7.31)):
        rows.append(
            Row(
                "fig. 9",
                f"{name}: execution time, FISH over SG, worst of the workers",
                Printed("1.07 at worst", "section 6.2", 1.07, "at most"),
                Extreme(
                    tuple(_times(real("fish", name, n), real("shuffle", name, n)) for n in WIDTHS)
                ),
            )
        )
        rows += [
            Row(
                "fig. 9",
                f"{name}: execution time, PKG over FISH, {n} workers",
                Printed(f"{value:g}", "section 6.2", value),
                _times(real("partial_key", name, n), real("fish", name, n)),
                _ASSUMED,
            )
            for n, value in ((16, first), (128, last))
        ]
    for rival, label, value in (("d_choices", "D-Choices", 7.44), ("w_choices", "W-Choices", 6.95)):
        rows.append(
            Row(
                "fig. 9",
                f"execution time, {label} over FISH, best of MT and AM and of the workers",
                Printed(f"up to {value:g}", "section 6.2", value),
                Extreme(
                    tuple(
                        _times(real(rival, name, n), real("fish", name, n))
                        for name in REAL
                        for n in WIDTHS
                    )
                ),
                "as on ZF: counts of the whole life follow late, but not that late",
            )
        )
    return tuple(rows)


def _storm_rows() -> tuple[Row, ...]:
    def saved(figure: str, name: str) -> Measure:
        return Saving(Value(storm("fish", name), figure), Value(storm("w_choices", name), figure))

    def rate(rival: str) -> Measure:
        return Extreme(
            tuple(
                Ratio(
                    Value(storm("fish", name), "throughput_per_second"),
                    Value(storm(rival, name), "throughput_per_second"),
                )
                for name in REAL
            )
        )

    return (
        Row(
            "fig. 18",
            "MT: mean latency saved over W-Choices, percent",
            Printed("87.12", "section 6.6", 87.12),
            saved("latency_mean_ms", "MT"),
            _ASSUMED,
        ),
        Row(
            "fig. 18",
            "MT: p99 saved over W-Choices, percent",
            Printed("76.34", "section 6.6", 76.34),
            saved("latency_p99_ms", "MT"),
            _ASSUMED,
        ),
        Row(
            "fig. 19",
            "throughput over W-Choices, better of MT and AM",
            Printed("1.32", "section 6.6", 1.32),
            rate("w_choices"),
            _ASSUMED,
        ),
        Row(
            "fig. 19",
            "throughput over D-Choices, better of MT and AM",
            Printed("1.48", "section 6.6", 1.48),
            rate("d_choices"),
            _ASSUMED,
        ),
    )


PART_ROWS = (*_rule_rows(), *_worker_rows(), *_real_rows(), *_storm_rows())
