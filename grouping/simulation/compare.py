"""Order the groupings of one trace, and say whether any of them is faster than key grouping.

What counts is how long the slowest partition takes, then how much state the splitting costs: two
groupings whose times are within 5 % of each other are as good as equal, and the one with less
replication comes first.
"""

import math
from collections.abc import Sequence

from unskew.grouping.simulation.reports import SimulationReport

BASELINE = "key"
CLOSE = 1.05
WORTHWHILE = 1.1
"""Below this factor a gain is not worth another moving part."""


def ranked(reports: Sequence[SimulationReport]) -> list[SimulationReport]:
    """Sort the reports, the best first."""
    slowest = [_slowness(report) for report in reports]
    least = [min(column) for column in zip(*slowest, strict=True)]

    def order(report: SimulationReport) -> tuple[float, ...]:
        tiers = [_tier(value, best) for value, best in zip(_slowness(report), least, strict=True)]
        return (*tiers, report.replication, *_slowness(report))

    return sorted(reports, key=order)


def verdict(reports: Sequence[SimulationReport]) -> str:
    """One line on what to do; `reports` must have the one of `key`."""
    key = next(report for report in reports if report.grouping == BASELINE)
    best = ranked(reports)[0]
    share = key.batches.max_over_mean_mean
    if key.execution is None and share <= WORTHWHILE:
        return (
            "You do not need Unskew: with plain key grouping the fullest partition has"
            f" {share:.2f}x its fair share, so nothing can gain more than"
            f" {(share - 1) * 100:.0f} %."
        )
    gains = [_ratio(old, new) for old, new in zip(_slowness(key), _slowness(best), strict=True)]
    if best is key or max(gains) <= WORTHWHILE:
        return (
            "You do not need Unskew: no grouping is more than"
            f" {(WORTHWHILE - 1) * 100:.0f} % faster than plain key grouping here."
        )
    return f"Use {best.grouping}: {_reason(key, best)}. {_CAVEAT}"


_CAVEAT = (
    "Sums and counts gain nothing: Spark's groupBy combines them before its shuffle; the work must"
    " be about 10 us a record and more, and come after it."
)


def _reason(key: SimulationReport, best: SimulationReport) -> str:
    state = f"{_ratio(best.pairs, key.pairs):.2f}x the state of key grouping"
    if key.execution is None or best.execution is None:
        shares = key.batches.max_over_mean_mean, best.batches.max_over_mean_mean
        return (
            f"its fullest partition has {shares[1]:.2f}x its fair share, key grouping's"
            f" {shares[0]:.2f}x, for {state}"
        )
    times = key.execution, best.execution
    return (
        f"{times[1].execution_seconds:.3g} s and a p99 latency of"
        f" {times[1].latency_p99_ms:.3g} ms, key grouping"
        f" {times[0].execution_seconds:.3g} s and {times[0].latency_p99_ms:.3g} ms, for {state}"
    )


def _slowness(report: SimulationReport) -> tuple[float, ...]:
    if report.execution is None:
        return (report.batches.max_over_mean_mean,)
    return (report.execution.execution_seconds, report.execution.latency_p99_ms)


def _tier(value: float, best: float) -> int:
    ratio = _ratio(value, best)
    return 10**9 if math.isinf(ratio) else int(math.log(max(ratio, 1.0)) / math.log(CLOSE))


def _ratio(value: float, best: float) -> float:
    if best > 0:
        return value / best
    return math.inf if value > 0 else 1.0
