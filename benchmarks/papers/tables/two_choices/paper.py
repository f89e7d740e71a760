"""Paper 001, "When two choices are not enough": D-Choices, W-Choices, round-robin head."""

from collections.abc import Callable, Iterable
from functools import cache, partial

import numpy as np

from benchmarks.balance import zipf_shares
from benchmarks.papers.definitions import (
    Exact,
    Extreme,
    Measure,
    Paper,
    Plot,
    Points,
    Printed,
    Ratio,
    Row,
    Run,
    Value,
)
from benchmarks.papers.tables.two_choices.cluster import CLUSTER_PLOTS, CLUSTER_ROWS
from benchmarks.papers.tables.two_choices.heads import HEAD_PLOT, HEAD_ROWS
from benchmarks.papers.tables.two_choices.least_choices import LEAST_PLOTS, LEAST_ROWS
from benchmarks.papers.tables.two_choices.streams import REAL, STREAM_PLOTS, STREAM_ROWS
from unskew.grouping.parts.choices import solve_choices

RECORDS, QUICK = 10_000_000, 1_000_000
KEYS = 10_000
ZIPFS = (0.4, 0.8, 1.2, 1.6, 2.0)
ALL_ZIPFS = tuple(round(0.1 * step, 1) for step in range(1, 21))
WIDTHS = (5, 10, 20, 50, 100)
NAMES = {
    "partial_key": "PKG",
    "d_choices": "D-Choices",
    "w_choices": "W-Choices",
    "round_robin_head": "RR",
}
EPSILON, SOURCES = 1e-4, 5
MORE_KEYS = (100_000, 1_000_000)
NO_NUMBER = "plot only"


def zipf(grouping: str, n: int, z: float, keys: int = KEYS) -> Run:
    """A stream of the paper's simulations."""
    return Run(grouping, f"zipf:z={z:g},keys={keys},records={RECORDS}", n, SOURCES, quick=QUICK)


def worst(name: str, runs: Iterable[Run]) -> Measure:
    """The largest figure of some runs."""
    return Extreme(tuple(Value(run, name) for run in runs))


@cache
def memory(z: float, n: int, choices: str) -> float:
    """The paper's estimate of memory: records of each key or its choices, what is less."""
    shares = zipf_shares(z, KEYS)
    head = shares[shares >= 1 / (5 * n)]
    d = {"pkg": 2, "sg": n, "w": n, "d": min(n, solve_choices(head, n, EPSILON))}[choices]
    limits = np.full(KEYS, n if choices == "sg" else 2)
    limits[: head.size] = d
    return float(np.minimum(shares * RECORDS, limits).sum())


def overhead(choices: str, over: str, n: int, z: float) -> float:
    """The memory of D-Choices or W-Choices over another's, in percent of it."""
    return 100 * memory(z, n, choices) / memory(z, n, over)


def overhead_max(choices: str, over: str, n: int) -> float:
    """The worst of all skews."""
    return max(overhead(choices, over, n, z) for z in ALL_ZIPFS)


@cache
def share_of_workers(n: int, z: float) -> float:
    """The d / n that inequality (3) asks for."""
    shares = zipf_shares(z, KEYS)
    return min(1.0, solve_choices(shares[shares >= 1 / (5 * n)], n, EPSILON) / n)


def share_max(n: int) -> float:
    """The largest over all skews."""
    return max(share_of_workers(n, z) for z in ALL_ZIPFS)


def _exact_rows() -> tuple[Row, ...]:
    percent = "percent of PKG's estimated memory, worst of all skews"
    return (
        Row(
            "section I",
            "share of the first key at z = 2.0, percent",
            Printed("nearly 60", "section I", 60.0),
            Exact(lambda: 100 * float(zipf_shares(2.0, KEYS)[0])),
        ),
        Row(
            "fig. 4",
            "D-Choices: largest d / n over all skews, n = 50",
            Printed("below 1", "section IV-B", 0.999, "at most"),
            Exact(lambda: share_max(50)),
        ),
        Row(
            "fig. 4",
            "the same, n = 100",
            Printed("below 1", "section IV-B", 0.999, "at most"),
            Exact(lambda: share_max(100)),
        ),
        Row(
            "fig. 5",
            f"W-Choices, n = 100: {percent}",
            Printed("up to 125", "section IV-B", 125.0),
            Exact(lambda: overhead_max("w", "pkg", 100)),
        ),
        Row(
            "fig. 5",
            f"D-Choices, n = 100: {percent}",
            Printed("at most 130", "caption", 130.0, "at most"),
            Exact(lambda: overhead_max("d", "pkg", 100)),
        ),
        Row(
            "fig. 6",
            "W-Choices, n = 100: percent of SG's estimated memory, worst of all skews",
            Printed("at most 20", "caption", 20.0, "at most"),
            Exact(lambda: overhead_max("w", "sg", 100)),
        ),
    )


def _memory_rows() -> tuple[Row, ...]:
    def over(grouping: str, n: int, base: str, figure: str) -> Measure:
        return Extreme(
            tuple(
                Ratio(Value(zipf(grouping, n, z), "pairs", 100), Value(zipf(base, n, z), figure))
                for z in ZIPFS
            )
        )

    printed = Printed("at most 130", "caption", 130.0, "at most")
    return (
        *(
            Row(
                "fig. 5",
                f"{NAMES[name]}, n = {n}: measured pairs, percent of sum min(f, 2), worst skew",
                printed,
                over(name, n, name, "pairs_of_two"),
            )
            for name in ("d_choices", "w_choices")
            for n in (50, 100)
        ),
        Row(
            "fig. 5",
            "D-Choices, n = 100: measured pairs, percent of PKG's measured pairs, worst skew",
            printed,
            over("d_choices", 100, "partial_key", "pairs"),
            "PKG has fewer pairs than the paper's estimate of it: where the hot keys overload their"
            " two workers, a cold key keeps to its other candidate",
        ),
    )


def _balance_rows() -> tuple[Row, ...]:
    dc = "s x epsilon = 5e-4 at most"
    line = SOURCES * EPSILON
    return (
        *(
            Row(
                "fig. 10",
                f"D-Choices, n = {n}: worst imbalance of five skews",
                Printed(dc, "section V, Q3", line, "at most"),
                worst("imbalance", (zipf("d_choices", n, z) for z in ZIPFS)),
                "z = 1.2: the paper's own inequality gives too small a d; `raise_choices` closes it"
                if n == 10
                else "",
            )
            for n in WIDTHS
        ),
        *(
            Row(
                "fig. 10",
                f"{name}: worst imbalance of five skews and {len(WIDTHS)} widths",
                Printed(text, "section V, Q3"),
                worst("imbalance", (zipf(grouping, n, z) for n in WIDTHS for z in ZIPFS)),
            )
            for grouping, name, text in (
                ("w_choices", "W-Choices", "constantly low"),
                ("round_robin_head", "RR", "like D-Choices"),
                ("partial_key", "PKG", NO_NUMBER),
            )
        ),
        *(
            Row(
                "fig. 10",
                f"{NAMES[name]}, n = 100: worst imbalance with 10^5 and 10^6 keys",
                Printed("as with 10^4", "section V, Q3"),
                worst("imbalance", (zipf(name, 100, z, keys) for z in ZIPFS for keys in MORE_KEYS)),
            )
            for name in NAMES
        ),
    )


def _threshold_rows() -> tuple[Row, ...]:
    def spread(grouping: str, n: int) -> Measure:
        return worst(
            "imbalance",
            (zipf(f"{grouping}:theta={theta}", n, 2.0) for theta in (1 / n, 1 / (8 * n))),
        )

    loads = "imbalance at z = 2.0, worse of theta = 1/n and 1/8n"
    return tuple(
        Row(
            "fig. 7",
            f"{NAMES[grouping]}, n = {n}: {loads}",
            Printed(text, "section V, Q1", limit, "at most"),
            spread(grouping, n),
        )
        for grouping, n, text, limit in (
            ("w_choices", 50, "ideal", 1e-4),
            ("w_choices", 100, "ideal", 1e-4),
            ("round_robin_head", 50, "a larger gradient", None),
            ("round_robin_head", 100, "imbalance under modest skew", None),
        )
    )


def head_size(theta: float, z: float) -> float:
    """How many keys have a share of at least theta."""
    return float((zipf_shares(z, KEYS) >= theta).sum())


def _exact_plots() -> tuple[Plot, ...]:
    def over_zipf(of: Callable[[float], float]) -> Points:
        return tuple((z, Exact(partial(of, z))) for z in ALL_ZIPFS)

    heads = {
        f"n = {n}, theta = {text}": over_zipf(partial(head_size, theta))
        for n in (50, 100)
        for text, theta in (("1/5n", 1 / (5 * n)), ("2/n", 2 / n))
    }
    shares = {f"n = {n}": over_zipf(partial(share_of_workers, n)) for n in WIDTHS}
    plots = [
        Plot("001-fig3", "Fig. 3: keys in the head", "z", "keys", heads, log=False),
        Plot("001-fig4", "Fig. 4: d / n of D-Choices", "z", "d / n", shares, log=False),
    ]
    for number, base, label in (("5", "pkg", "PKG"), ("6", "sg", "SG")):
        lines = {
            f"{name}, n = {n}": over_zipf(partial(overhead, choices, base, n))
            for n in (50, 100)
            for choices, name in (("d", "D-Choices"), ("w", "W-Choices"))
        }
        title = f"Fig. {number}: estimated memory, percent of {label}'s"
        plots.append(Plot(f"001-fig{number}", title, "z", "percent", lines, log=False))
    return tuple(plots)


def _threshold_plots() -> tuple[Plot, ...]:
    thetas = {"2/n": 2.0, "1/n": 1.0, "1/2n": 0.5, "1/4n": 0.25, "1/8n": 0.125}
    return tuple(
        Plot(
            f"001-fig7-{label}-n{n}",
            f"Fig. 7: imbalance over skew of {label}, n = {n}, by theta",
            "z",
            "imbalance",
            {
                f"theta = {text}": tuple(
                    (z, Value(zipf(f"{name}:theta={times / n}", n, z), "imbalance")) for z in ZIPFS
                )
                for text, times in thetas.items()
            },
        )
        for name, label in (("w_choices", "W-Choices"), ("round_robin_head", "RR"))
        for n in (50, 100)
    )


def _plots() -> tuple[Plot, ...]:
    def shown(n: int, keys: int) -> Plot:
        power = len(str(keys)) - 1
        return Plot(
            f"001-fig10-n{n}" + (f"-k{power}" if keys != KEYS else ""),
            f"Fig. 10: imbalance over skew, n = {n}, 10^{power} keys",
            "z",
            "imbalance",
            {
                label: tuple((z, Value(zipf(name, n, z, keys), "imbalance")) for z in ZIPFS)
                for name, label in NAMES.items()
            },
        )

    return (*(shown(n, KEYS) for n in WIDTHS), *(shown(100, keys) for keys in MORE_KEYS))


PAPER = Paper(
    "001",
    "When two choices are not enough",
    "5 sources, epsilon = 1e-4, theta = 1/5n, Zipf's law over 10^4 keys, m = 10^7, one seed; the"
    " groupings' `memory` is `stream`. Five of the paper's twenty skews. Estimated memory is the"
    " paper's formula with exact frequencies. Figs. 13 and 14: 48 sources, 80 workers, 1 ms a"
    " record, a closed loop with 100 records under way a source (not in the paper), each source"
    " sending 90 a second at most (fitted).",
    (
        *_exact_rows(),
        *_memory_rows(),
        *_threshold_rows(),
        *HEAD_ROWS,
        *_balance_rows(),
        *LEAST_ROWS,
        *STREAM_ROWS,
        *CLUSTER_ROWS,
    ),
    (
        *_exact_plots(),
        *_threshold_plots(),
        HEAD_PLOT,
        *LEAST_PLOTS,
        *_plots(),
        *STREAM_PLOTS,
        *CLUSTER_PLOTS,
    ),
    real=REAL,
)
