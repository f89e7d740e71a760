"""What counts of one batch tell of the next: the largest without what chance gave them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.base import Int64s
from unskew.grouping.parts.level.expected import predict_records


def draw_counts(z: float, keys: int, records: int, seed: int) -> tuple[Int64s, np.ndarray]:
    """Draw the counts of a batch; with what is expected of each key in truth."""
    truth = np.arange(1, keys + 1.0) ** -z
    truth *= records / truth.sum()
    counts = np.random.default_rng(seed).poisson(truth)
    return counts[counts > 0], truth[counts > 0]


@pytest.mark.parametrize("z", [0.0, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_the_largest_counts_are_expected_to_be_what_they_are(z: float) -> None:
    """As counted they are up to 20 % too large; drawn by one factor, up to 6.6 % too small."""
    for seed in range(3):
        counts, truth = draw_counts(z, 10_000, 1_000_000, seed)
        largest = np.argsort(-counts)[:445]
        expected = predict_records(counts)[largest].sum()
        assert truth[largest].sum() == pytest.approx(expected, rel=0.02)


def test_keys_that_are_alike_are_expected_to_be() -> None:
    counts, _ = draw_counts(0.0, 10_000, 1_000_000, 0)
    assert counts.std() > 9.5
    assert predict_records(counts).std() < 2.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 10**9), max_size=200))
def test_any_counts_keep_their_sum_and_their_order(listed: list[int]) -> None:
    counts = np.array(sorted(listed), np.int64)
    expected = predict_records(counts)
    # Each is rounded to three digits.
    assert expected.sum() == pytest.approx(counts.sum(), rel=1e-6, abs=5.1e-4 * counts.size)
    assert (expected > 0).all()
    assert (np.diff(expected) >= -2e-3).all()
