"""Paper 004's section IV: the bound of the greedy rule, and the error of the estimates."""

from functools import cache, partial

import numpy as np

from benchmarks.balance import zipf_shares
from benchmarks.papers.definitions import Exact, Measure, Printed, Ratio, Row, Run, Value
from benchmarks.papers.tables.posg.runs import REPORTED
from unskew.grouping.base import Float64s
from unskew.grouping.hashing import salts
from unskew.grouping.parts.sketches.count_min import add, freeze, frozen_cost, shape

KEYS, RECORDS, EPSILON, DELTA, STREAMS = 4096, 32_768, 0.05, 0.1, 100
COSTS = np.resize(np.arange(1.0, 65.0), KEYS)
"""Milliseconds by key; which keys are frequent is drawn."""
_DRAWS = 5
_WHOLE = Exact(lambda: 1.0)


def _makespan(k: int, grouping: str, more: str, figure: str) -> Measure:
    trace = f"posg-costs:z=1,records={RECORDS}"
    run = Run(grouping, trace, k, 1, f"{more} --streams {STREAMS}", RECORDS)
    return Ratio(_WHOLE, Value(run, f"least.{figure}"))


def _bounds() -> tuple[Row, ...]:
    at_once = "--full-knowledge true"
    paced = "--utilisation 1 --reports completed --feedback-records 64"
    bound = "2 - 1/k = {:.3g} times the best possible at most"
    where = "theorem 4.2"
    rows = [
        Row(
            where,
            f"k = {k}: makespan of full knowledge over the mean work, most of {STREAMS} streams",
            Printed(bound.format(2 - 1 / k), where, 2 - 1 / k, "at most"),
            _makespan(k, "shuffle", at_once, "full_knowledge_utilisation"),
        )
        for k in (2, 5, 10)
    ]
    rows += [
        Row(
            where,
            f"k = {k}: makespan of POSG over the mean work, most of {STREAMS} streams,"
            " synchronised by reports",
            Printed(bound.format(2 - 1 / k), where, 2 - 1 / k, "at most"),
            _makespan(k, REPORTED, paced, "utilisation"),
        )
        for k in (2, 5, 10)
    ]
    return tuple(rows)


def expected_ratio(cost: float) -> float:
    """The paper's E(W / F) of a key with this cost, all keys equally frequent."""
    columns = shape(EPSILON, DELTA)[1]
    alone = 1 - (1 - 1 / columns) ** KEYS
    total = float(COSTS.sum())
    correction = columns * (total - KEYS * cost) / (KEYS * (KEYS - 1)) * alone
    return (total - cost) / (KEYS - 1) - correction


@cache
def estimates(z: float, draw: int) -> tuple[Float64s, Float64s]:
    """The estimate of each key's cost after a stream of Zipf's law, and the records of each."""
    counts = np.random.default_rng(draw).multinomial(RECORDS, zipf_shares(z, KEYS))
    order = np.random.default_rng(draw + 1000).permutation(KEYS)
    frequencies = counts[order].astype(np.float64)
    seeds = salts(draw, shape(EPSILON, DELTA)[0])
    records, seconds = (np.zeros(shape(EPSILON, DELTA)) for _ in range(2))
    for key in np.flatnonzero(frequencies):
        count = frequencies[key]
        add(records, seconds, seeds, np.uint64(key), count, count * COSTS[key])
    frozen = np.zeros((1, *records.shape, 2), np.float32)
    freeze(records, seconds, float(COSTS.mean()), frozen[0])
    known = [frozen_cost(frozen, 0, seeds, np.uint64(key)) for key in range(KEYS)]
    return np.array(known), frequencies


def mean_estimate(cost: float) -> float:
    """Of the keys with this cost, all keys equally frequent."""
    known = [estimates(0.0, draw)[0][cost == COSTS].mean() for draw in range(_DRAWS)]
    return float(np.mean(known))


def relative_error(z: float) -> float:
    """How far the estimates are off, by record, in percent of the costs."""
    errors = []
    for draw in range(_DRAWS):
        known, frequencies = estimates(z, draw)
        errors.append(frequencies @ np.abs(known - COSTS) / (frequencies @ COSTS))
    return 100 * float(np.mean(errors))


def _estimate_rows() -> tuple[Row, ...]:
    def expected(cost: float) -> Row:
        value = expected_ratio(cost)
        return Row(
            "section IV-B",
            f"uniform: mean estimate of the keys that cost {cost:g} ms, ms",
            Printed(f"{value:.1f}", "the formula of section IV-B", value),
            Exact(partial(mean_estimate, cost)),
        )

    errors = tuple(
        Row(
            "section IV-B",
            f"{label}: mean error of an estimate, percent of the cost, by record",
            Printed("not printed", "section IV-B"),
            Exact(partial(relative_error, z)),
        )
        for label, z in (("uniform", 0.0), ("Zipf-1.0", 1.0), ("Zipf-2.0", 2.0))
    )
    return (expected(1.0), expected(64.0), *errors)


BOUND_ROWS = (*_bounds(), *_estimate_rows())
