"""Paper 000's figures 2 and 3: what it finds wrong with D-Choices and W-Choices, and when."""

from benchmarks.papers.definitions import Extreme, Measure, Plot, Printed, Ratio, Row, Run, Value
from benchmarks.papers.tables.fish.cluster import storm
from benchmarks.papers.tables.fish.parts import WIDTHS

_WHERE = "section 2.3"
_COUNTED = {
    f"{label}{counters}": f"{name}:capacity={counters},caution=0"
    for counters in (100, 1000)
    for name, label in (("d_choices", "D-C"), ("w_choices", "W-C"))
}
"""SpaceSaving with this number of counters; `caution=0` is the paper's test."""
_ALL = {"FG": "key", "PKG": "partial_key", "SG": "shuffle", **_COUNTED}
_GUARANTEED = (
    "ours tests the guaranteed count (count - error), so only keys that are surely hot are spread;"
    " by the raw count every key tests as hot with 100 counters ([findings](fish-findings.md))"
)
_KNOWN = (
    "with 1000 counters the hot keys are known, see [findings](fish-findings.md): the paper's were"
    " probably not"
)


def amazon(name: str, n: int) -> Run:
    """The stream like Amazon's reviews, in the closed loop."""
    return storm(_ALL[name], "AM", n)


def _memory(name: str, n: int) -> Measure:
    return Ratio(Value(amazon(name, n), "pairs"), Value(amazon("FG", n), "pairs"))


def _p99(name: str, over: str, n: int = 128) -> Measure:
    figures = [Value(amazon(each, n), "latency_p99_ms") for each in (name, over)]
    return Ratio(*figures)


def _worst(names: tuple[str, ...], over: str) -> Measure:
    return Extreme(tuple(_p99(name, over) for name in names))


MOTIVE_ROWS = (
    Row(
        "fig. 2",
        "AM, 128 workers: p99 latency, PKG over FG",
        Printed("0.71 (2,808 and 3,945 ms)", _WHERE, 2808 / 3945),
        _p99("PKG", "FG"),
        "two workers halve the first key's queue; what its cluster adds to both is not simulated",
    ),
    Row(
        "fig. 2",
        "AM, 128 workers: p99 latency, D-C1000 or W-C1000 over PKG, worse",
        Printed("almost the same", _WHERE, 1.0),
        _worst(("D-C1000", "W-C1000"), "PKG"),
        _KNOWN,
    ),
    Row(
        "fig. 2",
        "AM, 128 workers: p99 latency, D-C100 or W-C100 over PKG, worse",
        Printed("partly improved", _WHERE, 1.0, "at most"),
        _worst(("D-C100", "W-C100"), "PKG"),
        _GUARANTEED,
    ),
    Row(
        "fig. 3",
        "AM, 128 workers: memory, SG over FG",
        Printed("up to 23.16", _WHERE, 23.16),
        _memory("SG", 128),
        "the trace has the paper's records and keys at its full length; here 5 of its 7.91 million"
        " records, so fewer records a key",
    ),
    *(
        Row(
            "fig. 3",
            f"AM, 128 workers: memory, {name} over SG",
            Printed("similar", _WHERE, 1.0),
            Ratio(Value(amazon(name, 128), "pairs"), Value(amazon("SG", 128), "pairs")),
            _GUARANTEED,
        )
        for name in ("D-C100", "W-C100")
    ),
)
MOTIVE_PLOTS = (
    Plot(
        "000-fig2",
        "Fig. 2: AM, p99 latency",
        "workers",
        "ms",
        {
            name: tuple((n, Value(amazon(name, n), "latency_p99_ms")) for n in WIDTHS)
            for name in _ALL
        },
    ),
    Plot(
        "000-fig3",
        "Fig. 3: AM, memory over FG",
        "workers",
        "memory over FG",
        {name: tuple((n, _memory(name, n)) for n in WIDTHS) for name in _ALL},
    ),
)
