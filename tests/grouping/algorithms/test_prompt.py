"""Prompt: its rule against plain Python, its bounds, and what sets it apart from `level`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grouping.family.members import distinct_keys, zipf_keys
from unskew.grouping.base import Int32s, UInt64s
from unskew.grouping.parts.dealing.fragments import deal, fit
from unskew.grouping.registry import create

Counts = st.lists(st.integers(1, 60), min_size=1, max_size=40)


def plain(counts: list[int], n: int) -> list[dict[int, int]]:
    """By key, most frequent first: how many records each partition gets."""
    records = sum(counts)
    size = -(-records // n)
    cut = min(size, records // len(counts))
    course = [*range(n), *reversed(range(n))]
    parts = [{course[i % (2 * n)]: min(count, cut)} for i, count in enumerate(counts)]
    loads = [sum(part.get(p, 0) for part in parts) for p in range(n)]
    for part, count in zip(parts, counts, strict=True):
        (first,) = part
        rest = count - part[first]
        while rest > 0:
            fitting = [p for p in range(n) if loads[p] + rest <= size]
            if first in fitting:
                p = first
            elif fitting:
                p = max(fitting, key=lambda q: (loads[q], -q))
            else:
                p = min(range(n), key=lambda q: loads[q])
            given_here = min(rest, size - loads[p])
            part[p] = part.get(p, 0) + given_here
            loads[p] += given_here
            rest -= given_here
            first = -1
    return parts


def dealt(counts: list[int], n: int) -> tuple[list[int], list[int]]:
    """The loads of partitions, and the number of fragments of each key."""
    sizes, records = np.array(counts, np.int64), sum(counts)
    size = -(-records // n)
    cut = min(size, records // len(counts))
    firsts, loads = deal(sizes, cut, n)
    keys_dealt = np.bincount(firsts, minlength=n)
    assert keys_dealt.max() - keys_dealt.min() <= 1
    starts, slots, parts = fit(sizes, cut, size, firsts, loads)
    assert np.bincount(slots, parts, n).sum() == sizes[: starts.size].sum()
    lengths = np.diff(starts, append=slots.size).tolist()
    return loads.tolist(), lengths + [1] * (len(counts) - len(lengths))


@settings(deadline=None, max_examples=200)
@given(counts=Counts, n=st.integers(1, 9))
def test_loads_and_fragments_are_those_of_plain_python(counts: list[int], n: int) -> None:
    counts.sort(reverse=True)
    parts = plain(counts, n)
    loads, fragments = dealt(counts, n)

    assert loads == [sum(part.get(p, 0) for part in parts) for p in range(n)]
    assert fragments == [len(part) for part in parts]


@settings(deadline=None, max_examples=200)
@given(counts=Counts, n=st.integers(1, 9))
def test_no_load_is_a_mean_key_above_the_mean_and_few_fragments_are_made(
    counts: list[int], n: int
) -> None:
    counts.sort(reverse=True)
    records, keys = sum(counts), len(counts)
    loads, fragments = dealt(counts, n)

    assert max(loads) <= max(-(-records // n), -(-keys // n) * (records // keys))
    assert sum(loads) == records
    above = sum(count > records // keys for count in counts)
    assert sum(fragments) - keys <= above + n


def routed(keys: UInt64s, partitions: int, **setting: int) -> Int32s:
    return create("prompt", partitions=partitions, seed=1, **setting).route(keys)


def keys_by_partition(keys: UInt64s, routes: Int32s, partitions: int) -> list[int]:
    pairs = np.unique(np.stack([keys, routes.astype(np.uint64)]), axis=1)
    return np.bincount(pairs[1].astype(np.int64), minlength=partitions).tolist()


@pytest.mark.parametrize("z", [0.0, 0.8, 1.4, 2.0])
def test_a_share_is_even(z: float) -> None:
    keys = zipf_keys(50_000, z)
    loads = np.bincount(routed(keys, 20), minlength=20)

    assert loads.max() <= 2500 + keys.size / np.unique(keys).size


def test_routes_follow_from_counts_alone_up_to_the_order_within_a_key() -> None:
    keys = zipf_keys(20_000)
    other = np.random.default_rng(1).permutation(keys)
    pairs = [
        np.unique(np.stack([keys_, routed(keys_, 9).astype(np.uint64)]), axis=1, return_counts=True)
        for keys_ in (keys, other)
    ]

    assert np.array_equal(pairs[0][0], pairs[1][0])
    assert np.array_equal(pairs[0][1], pairs[1][1])


def test_keys_that_are_alike_each_have_a_partition() -> None:
    keys = np.repeat(distinct_keys(0, 100), 7)
    routes = routed(keys, 10)

    assert np.bincount(routes).tolist() == [70] * 10
    assert keys_by_partition(keys, routes, 10) == [10] * 10


def test_one_key_alone_goes_to_all_partitions_and_two_records_to_two() -> None:
    assert np.bincount(routed(np.full(100, 7, np.uint64), 8)).tolist() == [13] * 7 + [9]
    assert np.unique(routed(distinct_keys(0, 2), 50)).size == 2


def test_sources_begin_with_different_partitions() -> None:
    routes = [routed(distinct_keys(s, 1), 8, source=s, sources=8)[0] for s in range(8)]

    assert sorted(routes) == list(range(8))


def test_a_share_of_several_pieces_is_dealt_piece_by_piece() -> None:
    keys = zipf_keys(5000)
    pieces = create("prompt", partitions=4, seed=1, chunk_records=1000)
    chunks = [(part, None) for part in np.split(keys, [1, 700, 2500, 4999])]
    routes = np.concatenate(list(pieces.route_chunks(chunks)))

    expected = [routed(keys[start : start + 1000], 4) for start in range(0, 5000, 1000)]
    assert np.array_equal(routes, np.concatenate(expected))


def test_hot_keys_and_figures_are_those_of_the_batch() -> None:
    prompt = create("prompt", partitions=4, seed=1)
    prompt.route(np.repeat(np.array([5, 6, 7], np.uint64), [60, 35, 5]))
    assert prompt.hot_keys().tolist() == [5, 6]
    assert prompt.signals() == {"cut_keys": 2.0, "extra_fragments": 3.0}
    prompt.begin_batch()

    assert prompt.hot_keys().size == 0
    assert prompt.signals() == {"cut_keys": 0.0, "extra_fragments": 0.0}


def pairs_over_keys(name: str, z: float) -> float:
    """Of five sources together."""
    keys = zipf_keys(50_000, z)
    pairs = []
    for source in range(5):
        grouping = create(name, partitions=20, source=source, sources=5, seed=1)
        share = keys[source::5]
        pairs.append(np.stack([share, grouping.route(share).astype(np.uint64)]))
    distinct = np.unique(np.concatenate(pairs, axis=1), axis=1).shape[1]
    return distinct / np.unique(keys).size


@pytest.mark.parametrize("z", [0.0, 1.4])
def test_without_homes_sources_bring_a_key_to_many_partitions(z: float) -> None:
    assert pairs_over_keys("prompt", z) > 1.8 * pairs_over_keys("level", z)
