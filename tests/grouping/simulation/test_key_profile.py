"""The profile of a sample of keys: the heaviest, the head and the drift."""

import numpy as np
import pytest

from unskew.grouping.simulation.key_profile import profile_keys


def test_the_heaviest_keys_and_the_head_are_counted() -> None:
    keys = np.array([7] * 60 + [8] * 30 + list(range(100, 110)), np.uint64)

    profile = profile_keys(np.random.default_rng(1).permutation(keys), 2)

    assert (profile.records, profile.keys) == (100, 12)
    assert [(key.hash, key.records) for key in profile.heaviest[:2]] == [(7, 60), (8, 30)]
    assert profile.heaviest[0].share == pytest.approx(0.6)
    # A tenth of the records and more, with two partitions.
    assert (profile.head_keys, profile.head_share) == (2, pytest.approx(0.9))


def test_the_first_record_of_a_heavy_key_is_known() -> None:
    profile = profile_keys(np.array([5, 9, 9, 9], np.uint64), 2)

    assert [(key.hash, key.first) for key in profile.heaviest] == [(9, 1), (5, 0)]


def test_drift_is_what_changes_and_not_what_chance_makes() -> None:
    generator = np.random.default_rng(1)
    weights = np.arange(1, 1001) ** -1.2
    steady = generator.choice(1000, 40_000, p=weights / weights.sum()).astype(np.uint64)
    moved = steady.copy()
    moved[20_000:][steady[20_000:] == 0] = 5000

    share = float((steady == 0).mean())
    assert profile_keys(steady, 8).drift < 0.01
    assert profile_keys(moved, 8).drift == pytest.approx(share, abs=0.02)
