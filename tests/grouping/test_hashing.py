"""The seeded hashes: uniform, independent, nested, stable, and steady when partitions leave."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from unskew.grouping.hashing import mix64, pick, pick_active, salts
from unskew.grouping.kernels import kernel

FEW = [0, 1, 2, 3, 7, 2**63, 2**64 - 1]


@kernel
def _picks(keys: NDArray[np.uint64], salt: np.uint64, partitions: int) -> NDArray[np.int64]:
    out = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        out[i] = pick(keys[i], salt, partitions)
    return out


@kernel
def _picks_active(
    keys: NDArray[np.uint64],
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: NDArray[np.int32],
) -> NDArray[np.int64]:
    out = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        out[i] = pick_active(keys[i], salt, mask, active)
    return out


def _among(keys: NDArray[np.uint64], partitions: int, active: list[int]) -> NDArray[np.int64]:
    mask = np.zeros(partitions, np.uint8)
    mask[active] = 1
    return _picks_active(keys, salts(1, 1)[0], mask, np.array(active, np.int32))


def _mix_in_python(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ (value >> 33)) * factor % 2**64
    return value ^ (value >> 33)


def _chi_square(counts: NDArray[np.int64]) -> float:
    """The statistic's distance from its mean, in standard deviations."""
    degrees = counts.size - 1
    statistic = float(((counts - counts.mean()) ** 2 / counts.mean()).sum())
    return (statistic - degrees) / np.sqrt(2 * degrees)


SETS = {
    "small numbers": np.arange(200_000, dtype=np.uint64),
    "multiples of 2^32": np.arange(200_000, dtype=np.uint64) << np.uint64(32),
    "multiples of 1000": np.arange(200_000, dtype=np.uint64) * np.uint64(1000),
    "negative as unsigned": np.arange(-200_000, 0).astype(np.uint64),
    "random": np.random.default_rng(1).integers(0, 2**64, 200_000, dtype=np.uint64),
}


def test_mix_is_murmurs_finaliser() -> None:
    assert [int(mix64(np.uint64(value))) for value in FEW] == [_mix_in_python(v) for v in FEW]


def test_pick_is_the_high_bits_times_partitions() -> None:
    salt = salts(9, 1)[0]

    for key in FEW:
        high = _mix_in_python(key ^ int(salt)) >> 32
        for partitions in (1, 2, 3, 100, 10_000):
            assert pick(np.uint64(key), salt, partitions) == high * partitions >> 32


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("partitions", [2, 3, 7, 8, 100, 1000])
def test_picks_are_uniform(name: str, partitions: int) -> None:
    counts = np.bincount(_picks(SETS[name], salts(1, 1)[0], partitions), minlength=partitions)

    assert counts.size == partitions
    assert abs(_chi_square(counts)) < 5


@pytest.mark.parametrize("name", SETS)
def test_picks_with_two_salts_are_independent(name: str) -> None:
    first, second = (_picks(SETS[name], salt, 10) for salt in salts(1, 2))

    assert abs(_chi_square(np.bincount(first * 10 + second, minlength=100))) < 5


def test_picks_with_neighbouring_seeds_are_independent() -> None:
    first, second = (_picks(SETS["small numbers"], salts(seed, 1)[0], 10) for seed in (1, 2))

    assert abs(_chi_square(np.bincount(first * 10 + second, minlength=100))) < 5


def test_salts_are_nested_distinct_and_differ_by_seed() -> None:
    seeds = (0, 1, 2, 2**63 - 1)
    many = [salts(seed, 50) for seed in seeds]

    for seed, long in zip(seeds, many, strict=True):
        assert salts(seed, 3).tolist() == long[:3].tolist()
        assert long.dtype == np.uint64
    assert len(np.unique(np.concatenate(many))) == 4 * 50
    assert salts(0, 0).size == 0


def test_all_active_picks_are_the_plain_ones() -> None:
    keys = SETS["random"]

    assert (_among(keys, 100, list(range(100))) == _picks(keys, salts(1, 1)[0], 100)).all()


def test_only_keys_of_the_partition_that_left_move_and_they_spread() -> None:
    keys = SETS["random"]
    whole = _among(keys, 20, list(range(20)))
    part = _among(keys, 20, [i for i in range(20) if i != 13])

    assert (whole[part != whole] == 13).all()
    assert not (part == 13).any()
    moved = np.bincount(part[whole == 13], minlength=20)
    assert abs(_chi_square(np.delete(moved, 13))) < 5


def test_every_change_of_the_active_set_moves_only_what_it_must() -> None:
    keys = SETS["random"][:20_000]
    sets = [{0, 1, 2, 3, 4}, {0, 1, 3, 4}, {0, 3, 4}, {0, 2, 3, 4}, {0, 1, 2, 3, 4}]
    picks = [_among(keys, 5, sorted(active)) for active in sets]

    for before, after, was, now in zip(picks, picks[1:], sets, sets[1:], strict=False):
        moved = before != after
        forced = np.isin(before, list(was - now)) | np.isin(after, list(now - was))
        assert (moved == forced).all()
    assert (picks[0] == picks[-1]).all()


@pytest.mark.parametrize(("partitions", "few"), [(100, 3), (1000, 3), (10_000, 40)])
def test_keys_move_only_to_the_one_that_comes_also_where_few_of_many_are_active(
    partitions: int, few: int
) -> None:
    keys = SETS["random"][:100_000]
    fewer = list(range(7, 7 + few))
    before, after = (_among(keys, partitions, active) for active in (fewer, [*fewer, 90]))

    moved = before != after
    assert (after[moved] == 90).all()
    assert moved.mean() == pytest.approx(1 / (few + 1), rel=0.05)
    assert abs(_chi_square(np.bincount(before)[7:])) < 5
    assert abs(_chi_square(np.bincount(before[moved])[7:])) < 5


def test_last_partition_of_many_is_found() -> None:
    picks = _among(SETS["random"][:2000], 10_000, [9_999])
    two = _among(SETS["random"], 10_000, [17, 9_999])

    assert set(picks.tolist()) == {9_999}
    assert sorted(set(two.tolist())) == [17, 9_999]
    assert abs((two == 17).mean() - 0.5) < 0.01


CHILD = """
import sys
import numpy as np
from unskew.grouping.registry import GROUPINGS, create
sys.stdout.write(",".join(GROUPINGS) + ";")
keys = np.arange(1000, dtype=np.uint64) ** np.uint64(3)
times = np.arange(1000, dtype=np.int64) * 100_000
for name in ("key", "shuffle", "dynamic_key"):
    grouping = create(name, partitions=7, seed=3)
    sys.stdout.write("".join(map(str, grouping.route(keys, times))))
    sys.stdout.write(grouping.snapshot().checksum())
"""


@pytest.mark.slow
def test_routes_do_not_depend_on_pythons_hash_seed() -> None:
    checksums = {
        subprocess.run(
            [sys.executable, "-c", CHILD],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }

    assert len(checksums) == 1
