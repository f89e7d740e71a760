"""Paper 001's figure 8: what head and tail are of each worker's load."""

from benchmarks.papers.definitions import Derived, Figures, Plot, Printed, Row, Run, Value

WORKERS, THETA = 5, 1 / 40
_TRACE = "zipf:z=2,keys=10000,records=10000000"
_NAMES = {"partial_key": "PKG", "w_choices": "W-Choices", "round_robin_head": "RR"}
_WHERE = "section V, Q1"


def with_heads(grouping: str) -> Run:
    """The stream, with theta = 1/8n."""
    options = "" if grouping == "partial_key" else f":theta={THETA:g}"
    return Run(f"{grouping}{options}", _TRACE, WORKERS, 5, f"--head-theta {THETA:g}", 500_000)


def _of(figures: Figures, kind: str) -> list[float]:
    return [figures[f"{kind}_loads.{worker}"] for worker in range(WORKERS)]


def _two_fullest(figures: Figures) -> float:
    return 100 * sum(sorted(_of(figures, "head"))[-2:]) / figures["records"]


def _spread(figures: Figures) -> float:
    return max(_of(figures, "head")) / min(_of(figures, "head"))


def _over_ideal(figures: Figures) -> float:
    loads = [
        head + tail for head, tail in zip(_of(figures, "head"), _of(figures, "tail"), strict=True)
    ]
    return WORKERS * max(loads) / figures["records"]


HEAD_ROWS = (
    Row(
        "fig. 8",
        "PKG: percent of all records that are of the head and on two of five workers",
        Printed("the most frequent key overloads two", _WHERE),
        Derived(with_heads("partial_key"), _two_fullest),
    ),
    Row(
        "fig. 8",
        "W-Choices: fullest worker over the ideal",
        Printed("ideal", _WHERE, 1.0),
        Derived(with_heads("w_choices"), _over_ideal),
    ),
    Row(
        "fig. 8",
        "W-Choices: most over least of the head's records by worker",
        Printed("mixes head and tail", _WHERE),
        Derived(with_heads("w_choices"), _spread),
    ),
    Row(
        "fig. 8",
        "RR: most over least of the head's records by worker",
        Printed("split evenly", _WHERE, 1.0),
        Derived(with_heads("round_robin_head"), _spread),
    ),
    Row(
        "fig. 8",
        "RR: fullest worker over the ideal",
        Printed("falls short of perfect balance", _WHERE, 1.0, "at least"),
        Derived(with_heads("round_robin_head"), _over_ideal),
    ),
)
HEAD_PLOT = Plot(
    "001-fig8",
    "Fig. 8: head and tail by worker, n = 5, z = 2.0, theta = 1/8n",
    "worker",
    "percent of all records",
    {
        f"{label}, {kind}": tuple(
            (worker + 1, Value(with_heads(name), f"{kind}_loads.{worker}", 1e-5))
            for worker in range(WORKERS)
        )
        for name, label in _NAMES.items()
        for kind in ("head", "tail")
    },
    log=False,
)
