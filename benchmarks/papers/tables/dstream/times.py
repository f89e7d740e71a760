"""Paper 002's latencies (figures 9, 12, 15), its memory wall (2, 6), and keys that turn hot (20).

Latencies are of a closed loop, as Storm's sources are: one source with so many records under way.
By Little's law its mean latency is that number over the throughput, whatever the number is.
"""

import math
from dataclasses import dataclass
from functools import partial

from benchmarks.papers.definitions import (
    Exact,
    Figures,
    Measure,
    Plot,
    Printed,
    Ratio,
    RealStream,
    Results,
    Row,
    Run,
    Saving,
    Value,
    points_of,
)

RECORDS, QUICK = 4_000_000, 1_000_000
STREAMS = {
    "TW": "zipf:z=1.01,keys=5700000",
    "ST": "zipf:z=1.08,keys=6649",
    "HA": "zipf:z=1.0,keys=3400000",
}
"""Zipf's law with the keys of table II; z follows from fig. 3 (3 % of the words of TW are 80 % of
the records, 8 % of the symbols of ST), and is assumed for HA."""
NAMES = {"dstream": "DStream", "partial_key": "PKG", "distribution_aware": "DKG (Rivetti)"}
DRIFTING = {
    name: trace.replace("zipf:", "zipf-turnover:") + ",turnover=0.5,life_records=1000000"
    for name, trace in STREAMS.items()
}
"""The same with half of the keys new after a quarter of the stream each: drift is assumed."""
REAL = tuple(
    RealStream(name, STREAMS[name], what, spec, (DRIFTING[name],))
    for name, what, spec in (
        ("TW", "words of tweets, as text", "text:path=FILE"),
        ("ST", "a day of an exchange as CSV with titles", "csv:path=FILE,title=symbol"),
        ("HA", "hashtags, one a line", "file:FILE"),
    )
)
PENDING, WIDTH = 10_000, 128
WALL_PAIRS, MISS_US = 800_000, 1600
"""Fitted, so that shuffling stops to gain at 80 workers: with them it has 955,000 pairs, with 48
785,000, and no other grouping more than 64,000."""
BURSTS = 100
WALL_WIDTHS = (16, 32, 48, 64, 80, 96, 112, 128)
_PERCENTILES = "latency_percentiles_ms"
_KEYS = "over_time.signals.synopsis_keys"
_WHERE = "section VI-B"
_LITTLE = (
    "in a closed loop the mean latency follows the throughput, so it differs as figs. 8, 11 and 14"
    " do; the paper's latencies include its cluster's other stages"
)
_WAIT = (
    "here only the records of the fullest workers wait, and most others are done at once; on the"
    " paper's cluster all wait"
)
_APPLICATIONS = {
    "TW": ("fig. 9", "word count"),
    "ST": ("fig. 12", "VWAP"),
    "HA": ("fig. 15", "hashtags"),
}


def looped(grouping: str, name: str) -> Run:
    """A stream like one of the applications', from a source that waits for its own records."""
    trace = f"{STREAMS[name]},records={RECORDS}"
    more = f"--cost-us 100 --pending {PENDING}"
    return Run(grouping, trace, WIDTH, 1, more, QUICK, (_PERCENTILES,))


def _share_within(limit: float, figures: Figures) -> float:
    within = [
        percent for percent in range(1, 100) if figures[f"{_PERCENTILES}.{percent - 1}"] <= limit
    ]
    return float(max(within, default=0))


@dataclass(frozen=True)
class ShareWithin:
    """Percent of a grouping's records that are done within DStream's 90th percentile."""

    rival: Run
    own: Run

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs of both parts."""
        return (self.rival, self.own)

    def of(self, results: Results) -> float:
        """To one percent."""
        return _share_within(results[self.own][f"{_PERCENTILES}.89"], results[self.rival])

    def shown(self, results: Results) -> tuple[Run, ...]:
        """Runs of both parts."""
        return self.runs


def _latencies() -> tuple[Row, ...]:
    printed = {"TW": (64.0, 66.0), "ST": (31.0, 50.0), "HA": (30.0, 48.0)}
    rows = []
    for name, (figure, what) in _APPLICATIONS.items():
        for rival, value in zip(("partial_key", "distribution_aware"), printed[name], strict=True):
            means = [Value(looped(each, name), "latency_mean_ms") for each in ("dstream", rival)]
            rows.append(
                Row(
                    figure,
                    f"{what}, {WIDTH} workers: mean latency below {NAMES[rival]}'s, percent",
                    Printed(f"{value:g}", _WHERE, value),
                    Saving(*means),
                    _LITTLE,
                )
            )
    for rival, value in (("partial_key", 63.0), ("distribution_aware", 45.0)):
        rows.append(
            Row(
                "fig. 9",
                f"word count: percent of {NAMES[rival]}'s records that are done in the time that"
                " DStream needs for 90 %",
                Printed(f"{value:g}", _WHERE, value),
                ShareWithin(looped(rival, "TW"), looped("dstream", "TW")),
                _WAIT,
            )
        )
    return tuple(rows)


def wall(grouping: str, n: int) -> Run:
    """As many records a key as the paper's synthetic stream has, and a memory that is too small."""
    trace = f"zipf:z=1,keys=40000,records={RECORDS}"
    more = f"--cost-us 100 --memory-pairs {WALL_PAIRS} --miss-us {MISS_US}"
    return Run(grouping, trace, n, 1, more, QUICK)


def _rate(grouping: str, n: int) -> Measure:
    return Value(wall(grouping, n), "throughput_per_second")


def _walls() -> tuple[Row, ...]:
    fitted = "by construction: the memory of all workers and the cost of a miss are fitted to it"
    return (
        Row(
            "fig. 2",
            "SG: throughput with 128 workers over that with 80, with too little memory",
            Printed("stops increasing at 80", _WHERE, 1.0),
            Ratio(_rate("shuffle", 128), _rate("shuffle", 80)),
            fitted,
        ),
        *(
            Row(
                "fig. 6",
                f"{label}: throughput with 128 workers over that with 80, with too little memory",
                Printed("keeps increasing", _WHERE, 1.0, "at least"),
                Ratio(_rate(name, 128), _rate(name, 80)),
            )
            for name, label in NAMES.items()
        ),
    )


def burst(predictor: str = "") -> Run:
    """In each of 100 streams a key has a tenth of the records for a quarter of the stream."""
    trace = "flash:share=0.1,begin=0.5,end=0.75,z=0.5,keys=10000,records=200000"
    words = [
        f"--hot-share 0.05 --points 200 --streams {BURSTS}",
        *([f"--predictor {predictor}"] if predictor else []),
    ]
    return Run("dstream", trace, WIDTH, 1, " ".join(words), 200_000)


def bound_of(r: int, c: int) -> float:
    """Inequality (2): how surely a key that tests as hot has 2^c records, in percent."""
    ratio = 2.0 ** (c - r)
    return 100 * (1 + ratio) * math.exp(-ratio)


def _bound_rows() -> tuple[Row, ...]:
    table = ((7, 99.28), (8, 97.35), (9, 90.98), (10, 73.53))
    return tuple(
        Row(
            "table I",
            f"r = 10: lower bound of P(N >= {2**c}), percent",
            Printed(f"{value:g}", "table I", value),
            Exact(partial(bound_of, 10, c)),
        )
        for c, value in table
    )


def _burst_rows() -> tuple[Row, ...]:
    rivals = {
        "a count-min sketch of the whole stream": ("count_min:share=0.02", 80.0),
        "Ada-CMS": ("ada_count_min:share=0.02,decay=0.9", 84.0),
    }
    until = "records from the begin of a burst (10 %) until its key is treated as hot"
    own = Value(burst(), "hot_delay_records")
    return (
        Row(
            "fig. 20",
            f"{until}, mean of {BURSTS} keys (to 1,000)",
            Printed("1.4 ms on its cluster", _WHERE),
            own,
        ),
        *(
            Row(
                "fig. 20",
                f"{until}: below that of {label}, percent",
                Printed(f"{value:g}", _WHERE, value),
                Saving(own, Value(burst(predictor), "hot_delay_records")),
                "its share and decay are not printed; one of a fiftieth is assumed, and a decline"
                " of 0.9 every 1,000 records",
            )
            for label, (predictor, value) in rivals.items()
        ),
        Row(
            "section IV-B",
            "records from the end of the burst until it is no longer treated so (to 1,000)",
            Printed(
                "16 shifts at most, each in 1/p updates: 102,400",
                "section IV-B",
                102_400.0,
                "at most",
            ),
            Value(burst(), "hot_decline_records"),
        ),
    )


def sized(p: float) -> Run:
    """The stream of words, for the synopsis' size."""
    trace = f"{STREAMS['TW']},records={RECORDS}"
    return Run(f"dstream:p={p:g}", trace, WIDTH, 1, quick=QUICK, series=(_KEYS,))


def _plots() -> tuple[Plot, ...]:
    cdfs = (
        Plot(
            f"002-{figure.replace('. ', '')}",
            f"{figure.capitalize()}: {what}, latency of the fastest so many percent",
            "percent of the records",
            "ms",
            {
                label: points_of(looped(rival, name), _PERCENTILES, 1, 1, 99)
                for rival, label in NAMES.items()
            },
        )
        for name, (figure, what) in _APPLICATIONS.items()
    )
    return (
        Plot(
            "002-fig2",
            "Fig. 2: throughput over workers, with too little memory, z = 1.0",
            "workers",
            "records a second",
            {
                label: tuple((n, _rate(name, n)) for n in WALL_WIDTHS)
                for name, label in {**NAMES, "key": "KG", "shuffle": "SG"}.items()
            },
        ),
        *cdfs,
        Plot(
            "002-fig21",
            "Fig. 21: keys in the synopsis over time",
            "records",
            "keys",
            {
                f"p = {p:g}": points_of(sized(p), _KEYS, RECORDS / 50, RECORDS / 50, 50)
                for p in (0.005, 0.01, 0.02, 0.05)
            },
        ),
    )


TIME_ROWS = (*_walls(), *_latencies(), *_bound_rows(), *_burst_rows())
TIME_PLOTS = _plots()
