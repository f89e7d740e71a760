"""Paper 001's real streams and its cluster: figures 1, 11, 13 and 14; and the least d, figure 9."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.balance import zipf_shares
from benchmarks.papers.definitions import (
    Derived,
    Extreme,
    Figures,
    Measure,
    Plot,
    Printed,
    Ratio,
    RealStream,
    Row,
    Run,
    Saving,
    Value,
    points_of,
)
from unskew.grouping.parts.choices import solve_choices

KEYS, SOURCES = 10_000, 5
RECORDS, QUICK = 10_000_000, 1_000_000
NO_NUMBER = "plot only"
WIDTHS = (5, 10, 20, 50, 100)
POINTS = 50
_IMBALANCE = "over_time.imbalance"
_NAMES = {"partial_key": "PKG", "d_choices": "D-Choices", "w_choices": "W-Choices"}
SOURCE_RATE = 90
"""What each of the 48 sources sends in a second at most: the parameter that the paper does not
give. 48 x 90 = 4,320 is between the two limits that its 1.5x and 2.3x ask for."""
TRACES = {
    "WP": f"wikipedia-like:records={RECORDS}",
    "TW": f"twitter-words-like:records={RECORDS}",
    "CT": "trades-like:records=690000",
}
"""Zipf's law with the keys and the first key's share of the paper's table I."""


REAL = (
    RealStream(
        "WP",
        TRACES["WP"],
        "pages of Wikipedia visited on a day; the third column of WikiBench's traces",
        "csv:path=FILE,column=3,separator=space",
    ),
    RealStream("TW", TRACES["TW"], "words of tweets, as text", "text:path=FILE"),
    RealStream("CT", TRACES["CT"], "cashtags, one a line", "file:FILE"),
)
_LINE = Printed("s x epsilon = 5e-4 at most", "section V, Q3", 5e-4, "at most")


def storm(grouping: str, z: float) -> Run:
    """The cluster of its figures 13 and 14."""
    trace = f"zipf:z={z:g},keys={KEYS},records=2000000"
    more = f"--cost-us 1000 --pending 100 --source-per-second {SOURCE_RATE}"
    return Run(grouping, trace, 80, 48, more, quick=200_000)


def real(grouping: str, n: int, trace: str) -> Run:
    """A stream like one of its real ones."""
    return Run(grouping, TRACES[trace], n, SOURCES, quick=QUICK, series=(_IMBALANCE,))


def _real_rows() -> tuple[Row, ...]:
    return (
        Row(
            "fig. 1",
            "WP, PKG, n = 100: imbalance, percent",
            Printed("close to 10", "section I", 10.0),
            Value(real("partial_key", 100, "WP"), "imbalance", 100),
            "the first key has 9.32 %: over two workers that makes 3.7 %; the paper's value needs"
            " both of its candidates on one worker (8.3 %), which ours never are",
            band=(3.3, 4.1),
        ),
        Row(
            "fig. 1",
            "WP, W-Choices, n = 100: imbalance, percent",
            Printed("below 0.1", "section I", 0.1, "at most"),
            Value(real("w_choices", 100, "WP"), "imbalance", 100),
            band=(0.0, 0.1),
        ),
        Row(
            "fig. 1",
            "WP, D-Choices, n = 100: imbalance, percent",
            Printed("below 0.1", "section I", 0.1, "at most"),
            Value(real("d_choices", 100, "WP"), "imbalance", 100),
            band=(0.0, 0.1),
        ),
        *(
            Row(
                "fig. 11",
                f"TW, {label}, n = 100: imbalance",
                printed,
                Value(real(name, 100, "TW"), "imbalance"),
            )
            for name, label, printed in (
                ("w_choices", "W-Choices", Printed("best", "section V, Q3")),
                ("d_choices", "D-Choices", _LINE),
                ("partial_key", "PKG", Printed(NO_NUMBER, "section V, Q3")),
            )
        ),
        Row(
            "fig. 11",
            "CT, D-Choices, n = 100: imbalance",
            Printed(
                "s x epsilon = 5e-4 at most, harder than TW and WP",
                "section V, Q3",
                5e-4,
                "at most",
            ),
            Value(real("d_choices", 100, "CT"), "imbalance"),
            "the inequality takes shares of the whole life, which drift dilutes: d stays near 2 and"
            " the imbalance is PKG's; W-Choices finds the same head and is ideal",
        ),
        Row(
            "fig. 11",
            "CT, W-Choices, n = 100: imbalance",
            Printed("better than D-Choices", "section V, Q3"),
            Value(real("w_choices", 100, "CT"), "imbalance"),
        ),
        Row(
            "fig. 11",
            "CT, PKG, n = 100: imbalance",
            Printed(NO_NUMBER, "section V, Q3"),
            Value(real("partial_key", 100, "CT"), "imbalance"),
        ),
    )


def _storm_rows() -> tuple[Row, ...]:
    source = "section V, Q4"
    limited = (
        "the sources' limit is fitted: at z = 2.0 the first key's workers allow 1,645 (KG) and"
        " 3,290 (PKG) records a second, so 2.3x is a limit of 3,780 and 1.5x of 4,940; without a"
        " limit W-Choices would have 24x and 48x"
    )

    def gain(over: str, name: str) -> Measure:
        return Extreme(
            tuple(
                Ratio(Value(storm("w_choices", z), name), Value(storm(over, z), name))
                for z in (1.4, 1.7, 2.0)
            )
        )

    return (
        Row(
            "fig. 13",
            "throughput, W-Choices over PKG, best of z = 1.4, 1.7, 2.0",
            Printed("1.5", source, 1.5),
            gain("partial_key", "throughput_per_second"),
            limited,
        ),
        Row(
            "fig. 13",
            "throughput, W-Choices over KG, best",
            Printed("2.3", source, 2.3),
            gain("key", "throughput_per_second"),
            limited,
        ),
        Row(
            "fig. 13",
            "throughput, W-Choices over SG, worst of the skews",
            Printed("matches", source, 1.0),
            Extreme(
                tuple(
                    Ratio(
                        Value(storm("w_choices", z), "throughput_per_second"),
                        Value(storm("shuffle", z), "throughput_per_second"),
                    )
                    for z in (1.4, 1.7, 2.0)
                ),
                "min",
            ),
            band=(0.97, 1.03),
        ),
        Row(
            "fig. 14",
            "p99 latency, saved by W-Choices over PKG at z = 2.0, percent",
            Printed("60", source, 60.0),
            Saving(
                Value(storm("w_choices", 2.0), "latency_p99_ms"),
                Value(storm("partial_key", 2.0), "latency_p99_ms"),
            ),
            "below the workers' capacity W-Choices hardly queues; the paper runs at the saturation"
            " point of its cluster, where all groupings share other queues",
        ),
        Row(
            "fig. 14",
            "the same over KG, percent",
            Printed("over 75", source, 75.0, "at least"),
            Saving(
                Value(storm("w_choices", 2.0), "latency_p99_ms"),
                Value(storm("key", 2.0), "latency_p99_ms"),
            ),
            band=(90.0, 100.0),
        ),
        Row(
            "fig. 14",
            "mean latency of PKG, percent of KG's, z = 2.0",
            Printed("about 50", source, 50.0),
            Ratio(
                Value(storm("partial_key", 2.0), "latency_mean_ms", 100),
                Value(storm("key", 2.0), "latency_mean_ms"),
            ),
            band=(45.0, 55.0),
        ),
    )


EPSILON, GRID_RECORDS = 1e-4, 2_000_000
GRIDS = {50: (2, 3, 4, 6, 8, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 49), 10: tuple(range(2, 10))}
ZIPFS = (1.2, 1.6, 2.0)


def fixed_choices(grouping: str, n: int, z: float) -> Run:
    """The paper's stream, shorter."""
    return Run(grouping, f"zipf:z={z:g},keys={KEYS},records={GRID_RECORDS}", n, 5)


def solved(n: int, z: float) -> int:
    """The paper's d for the exact head."""
    shares = zipf_shares(z, KEYS)
    return min(n, solve_choices(shares[shares >= 1 / (5 * n)], n, EPSILON))


@dataclass(frozen=True)
class LeastChoices:
    """The least of some fixed d whose imbalance is that of W-Choices, or epsilon a source."""

    n: int
    z: float

    @property
    def runs(self) -> tuple[Run, ...]:
        """W-Choices and every d."""
        fixed = (fixed_choices(f"d_choices:choices={d}", self.n, self.z) for d in GRIDS[self.n])
        return (fixed_choices("w_choices", self.n, self.z), *fixed)

    def of(self, results: Mapping[Run, Figures]) -> float:
        """D."""
        reference, *fixed = (results[each]["imbalance"] for each in self.runs)
        enough = max(reference, 5 * EPSILON)
        fitting = (d for d, own in zip(GRIDS[self.n], fixed, strict=True) if own <= enough)
        return float(next(fitting, self.n))

    def shown(self, results: Mapping[Run, Figures]) -> tuple[Run, ...]:
        """The run with that d, and W-Choices."""
        least = f"d_choices:choices={self.of(results):.0f}"
        return tuple(each for each in self.runs if each.grouping in {least, "w_choices"})


LEAST_ROWS = tuple(
    Row(
        "fig. 9",
        f"least d that balances as well as W-Choices (to s x epsilon), n = {n}, z = {z:g};"
        f" the inequality's d is {solved(n, z)}",
        Printed(
            "slightly below the d of D-Choices", "section V, Q2", float(solved(n, z)), "at most"
        ),
        LeastChoices(n, z),
        "z = 1.2: the inequality gives too small a d, see fig. 10",
    )
    for n in GRIDS
    for z in ZIPFS
)


def _over_time() -> tuple[Row, ...]:
    def settled(figures: Figures) -> float:
        later = [figures[f"{_IMBALANCE}.{i}"] for i in range(POINTS // 5, POINTS)]
        return max(later) / (sum(later) / len(later))

    return tuple(
        Row(
            "fig. 12",
            f"{trace}, {label}, n = 100: most over mean of the imbalances after a fifth of the"
            " stream",
            Printed("relatively stable", "section V, Q3"),
            Derived(real(name, 100, trace), settled),
        )
        for trace in TRACES
        for name, label in _NAMES.items()
    )


def _plots() -> tuple[Plot, ...]:
    def records(trace: str) -> float:
        return float(TRACES[trace].rpartition("records=")[2])

    return (
        *(
            Plot(
                f"001-fig11-{trace}",
                f"Fig. 11: {trace}, imbalance over workers",
                "workers",
                "imbalance",
                {
                    label: tuple((n, Value(real(name, n, trace), "imbalance")) for n in WIDTHS)
                    for name, label in _NAMES.items()
                },
            )
            for trace in TRACES
        ),
        *(
            Plot(
                f"001-fig12-{trace}",
                f"Fig. 12: {trace}, imbalance over time",
                "records",
                "imbalance",
                {
                    f"{label}, n = {n}": points_of(
                        real(name, n, trace),
                        _IMBALANCE,
                        records(trace) / POINTS,
                        records(trace) / POINTS,
                        POINTS,
                    )
                    for n in (20, 100)
                    for name, label in _NAMES.items()
                },
            )
            for trace in TRACES
        ),
    )


STREAM_PLOTS = _plots()
STREAM_ROWS = (*_over_time(), *LEAST_ROWS, *_real_rows(), *_storm_rows())
