"""Traces like published streams have the statistics that are printed, by their laws and drawn."""

import numpy as np
import pytest

from unskew.grouping.base import Float64s
from unskew.grouping.simulation.streams.published import PUBLISHED, PublishedParams
from unskew.grouping.simulation.streams.traces import open_trace

_EXACT_RANKS = 1 << 12
_BINS = 1500
PRINTED = {
    "wikipedia-like": (22e6, 2.9e6, 0.0932),
    "twitter-words-like": (1.2e9, 31e6, 0.0267),
    "memetracker-like": (49.21e6, 0.39e6, None),
    "amazon-like": (7.91e6, 0.25e6, None),
    "dstream-words-like": (658e6, 5.7e6, None),
    "stocks-like": (274e6, 6649, None),
    "hashtags-like": (43e6, 3.4e6, None),
}
"""Records, distinct keys and p1, as the papers have them."""


def law(params: PublishedParams) -> tuple[Float64s, Float64s]:
    """Probabilities of ranks, and how many ranks have them: rare ones are put together."""
    ranks = min(params.keys, _EXACT_RANKS)
    weights = np.arange(1, ranks + 1) ** -params.z
    sizes = np.ones(ranks)
    if params.keys > ranks:
        ends = np.geomspace(ranks + 0.5, params.keys + 0.5, _BINS)
        power = 1 - params.z
        parts = np.diff(np.log(ends)) if power == 0 else np.diff(ends**power) / power
        weights = np.append(weights, parts / np.diff(ends))
        sizes = np.append(sizes, np.diff(ends))
    return weights / (weights * sizes).sum(), sizes


def distinct_keys(params: PublishedParams) -> float:
    """How many are expected: of ranks that keep their keys, and of each life of the others."""
    shares, sizes = law(params)
    kept = -np.expm1(-params.records * shares)
    a_life = params.life_records * shares
    # The first and the last life are cut at a random place.
    lives = round(params.records / params.life_records) - 1
    replaced = lives * -np.expm1(-a_life) + 2 * (1 + np.expm1(-a_life) / a_life)
    return float((sizes * ((1 - params.turnover) * kept + params.turnover * replaced)).sum())


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_laws_have_the_printed_statistics(name: str) -> None:
    params = PUBLISHED[name]()
    records, keys, first = PRINTED[name]

    assert params.records == records
    assert distinct_keys(params) == pytest.approx(keys, rel=0.01)
    if first is not None:
        assert law(params)[0][0] == pytest.approx(first, rel=0.01)


def test_what_is_drawn_follows_the_law_also_beyond_its_table() -> None:
    spec = "wikipedia-like:records=300000"
    keys = np.concatenate([chunk.keys for chunk in open_trace(spec).chunks()])
    expected = distinct_keys(PUBLISHED["wikipedia-like"](records=300_000))
    counts = np.unique(keys, return_counts=True)[1]

    assert counts.size == pytest.approx(expected, rel=0.01)
    assert counts.max() / keys.size == pytest.approx(0.0932, rel=0.03)


def test_what_is_drawn_turns_over() -> None:
    spec = "zipf-turnover:records=200000,keys=1000,z=0.5,turnover=0.5,life_records=20000"
    keys = np.concatenate([chunk.keys for chunk in open_trace(spec).chunks()])
    begin, end = np.unique(keys[:10_000]), np.unique(keys[-10_000:])

    assert np.unique(keys).size == pytest.approx(500 + 500 * 11, rel=0.03)
    # Of 1000 ranks 500 keep their key, and 250 of the others change it in so many records.
    assert np.isin(end, begin).mean() == pytest.approx(500 / 1250, abs=0.03)
