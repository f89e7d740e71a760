"""Counts of keys, from hashes and from what partitions report."""

import numpy as np
import pytest

from tests.support.auto_worlds import count_hashes
from unskew.grouping.choice.key_counts import KeyCounts, ReportedKeys, merge_reports

SAMPLED_MAX = 200


def report(hashes: np.ndarray, counts: np.ndarray) -> ReportedKeys:
    """As a partition reports keys with these records."""
    smallest = np.argsort(hashes)[:SAMPLED_MAX]
    heavy = np.argsort(-counts, kind="stable")[:16]
    return ReportedKeys(
        hashes[heavy],
        counts[heavy].astype(np.int64),
        hashes[smallest],
        counts[smallest].astype(np.int32),
    )


def test_pairs_are_those_of_records_in_any_order() -> None:
    rng = np.random.default_rng(1)
    hashes = rng.integers(0, 2**64, 500, dtype=np.uint64)[rng.zipf(1.3, 20_000) % 500]
    drawn = rng.integers(0, 8, hashes.size)
    pairs = len(set(zip(hashes.tolist(), drawn.tolist(), strict=True)))

    counts = count_hashes(hashes)

    assert counts.distinct == np.unique(hashes).size
    assert counts.count_pairs(8) == pytest.approx(pairs, rel=0.03)
    assert counts.count_pairs(1) == counts.distinct


@pytest.mark.parametrize("split", [False, True], ids=["whole keys", "keys in every partition"])
@pytest.mark.parametrize("keys", [100, 30_000], ids=["all are sampled", "some are sampled"])
def test_reports_are_merged_to_the_counts_of_the_batch(keys: int, split: bool) -> None:
    rng = np.random.default_rng(2)
    hashes = rng.integers(0, 2**64, keys, dtype=np.uint64)
    counts = np.minimum(rng.zipf(1.6, keys), 5000) + 3
    if split:
        shares = np.stack([counts // 4, counts // 4, counts // 4, counts - 3 * (counts // 4)])
        parts = [report(hashes, share) for share in shares]
    else:
        parts = [report(hashes[at::4], counts[at::4]) for at in range(4)]

    merged = merge_reports(parts, SAMPLED_MAX)

    exact = keys == 100
    assert merged.distinct == pytest.approx(keys, rel=1e-9 if exact else 0.15)
    whole = KeyCounts(counts.astype(float), np.ones(keys))
    assert merged.count_pairs(16) == pytest.approx(whole.count_pairs(16), rel=0.15)


def test_no_report_is_no_key() -> None:
    assert merge_reports([], SAMPLED_MAX).distinct == 0
