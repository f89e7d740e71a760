"""Traces follow their laws, are the same for a seed, and come in chunks of no consequence."""

from collections import Counter

import numpy as np
import pytest

import unskew.grouping.simulation.streams.traces
from unskew.grouping.errors import GroupingError
from unskew.grouping.simulation.specs import SpecError, parse_spec, scalar
from unskew.grouping.simulation.streams.key_files import hash_text, read_keys, xxhash64
from unskew.grouping.simulation.streams.traces import FURTHER, TRACES, Trace, open_trace


def keys_of(trace: Trace) -> np.ndarray:
    return np.concatenate([chunk.keys for chunk in trace.chunks()])


def shares_of(keys: np.ndarray) -> np.ndarray:
    counts = np.unique(keys, return_counts=True)[1]
    return np.sort(counts)[::-1] / keys.size


@pytest.mark.parametrize("name", [*TRACES, *FURTHER])
def test_trace_is_a_function_of_its_seed(name: str) -> None:
    spec = f"{name}:records=20000,seed="

    first, again, other = (keys_of(open_trace(spec + seed)) for seed in ("7", "7", "8"))

    assert first.size == 20_000
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", [*TRACES, *FURTHER])
def test_chunk_size_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = open_trace(f"{name}:records=10000")
    whole = keys_of(trace)

    monkeypatch.setattr(unskew.grouping.simulation.streams.traces, "CHUNK_RECORDS", 333)

    assert np.array_equal(keys_of(trace), whole)


def test_zipf_frequencies_follow_the_law() -> None:
    shares = shares_of(keys_of(open_trace("zipf:z=1.4,keys=10000,records=1000000")))

    law = np.arange(1, 10_001) ** -1.4
    law /= law.sum()
    assert np.allclose(shares[:20], law[:20], rtol=0.05)


def test_zipf_with_exponent_zero_is_uniform() -> None:
    shares = shares_of(keys_of(open_trace("zipf:z=0,keys=10,records=100000")))

    assert shares.size == 10
    assert np.allclose(shares, 0.1, atol=0.005)


def test_drift_reverses_the_ranking_at_the_end_of_a_run() -> None:
    keys = keys_of(open_trace("zipf-drift:z=2,keys=100,records=10000,runs=2"))
    hot = [np.unique(part, return_counts=True) for part in np.split(keys, [4000, 5000, 9000])]

    first, last, again, last_again = (values[counts.argmax()] for values, counts in hot)

    assert first == again
    assert last == last_again
    assert first != last


def test_random_ranking_is_new_in_every_run() -> None:
    spec = "zipf-drift:z=3,keys=1000,records=10000,runs=2,ranking=random"
    keys = keys_of(open_trace(spec))

    hot = [np.unique(part, return_counts=True) for part in (keys[4000:5000], keys[9000:])]

    assert len({values[counts.argmax()] for values, counts in hot}) == 2


def test_flash_key_is_new_and_has_its_share() -> None:
    keys = keys_of(open_trace("flash:z=0.5,records=100000,share=0.4,begin=0.5,end=0.75"))
    hot = np.unique(keys[50_000:75_000], return_counts=True)
    key = hot[0][hot[1].argmax()]

    assert (keys[:50_000] == key).sum() == 0
    assert (keys[50_000:75_000] == key).mean() == pytest.approx(0.4, abs=0.02)
    assert (keys[75_000:] == key).sum() == 0


@pytest.mark.parametrize(("percent", "share"), [(0, 1 / 204), (40, 0.4), (80, 0.8), (100, 1.0)])
def test_country_key_takes_its_percent(percent: int, share: float) -> None:
    shares = shares_of(keys_of(open_trace(f"country:r={percent},records=100000")))

    assert shares[0] == pytest.approx(share, abs=0.01)
    assert shares.size == (1 if percent == 100 else 203 if percent == 0 else 204)


def test_half_skew_is_forty_percent_in_all() -> None:
    keys = keys_of(open_trace("half-skew:records=100000"))

    assert shares_of(keys)[0] == pytest.approx(0.4, abs=0.01)
    assert shares_of(keys[:50_000])[0] < 0.01


def test_posg_costs_belong_to_keys() -> None:
    chunks = list(open_trace("posg-costs:records=30000").chunks())
    keys = np.concatenate([chunk.keys for chunk in chunks])
    costs = np.concatenate([chunk.costs for chunk in chunks if chunk.costs is not None])

    cost_of = dict(zip(keys.tolist(), costs.tolist(), strict=True))
    assert [cost_of[key] for key in keys.tolist()] == costs.tolist()
    assert set(costs.tolist()) == {float(cost) for cost in range(1, 65)}


def test_the_hot_key_takes_its_percent_over_a_long_tail() -> None:
    shares = shares_of(keys_of(open_trace("hot-key:r=68,keys=5000,records=50000")))

    assert shares[0] == pytest.approx(0.68, abs=0.01)
    assert shares[1] == pytest.approx(0.32 * 0.11, abs=0.005)
    assert shares.size > 2000


def test_exact_counts_are_each_keys_part_in_a_random_order() -> None:
    spec = "zipf:keys=50,z=1,records=30000,counts=exact,seed="
    first, other = keys_of(open_trace(spec + "1")), keys_of(open_trace(spec + "2"))
    law = np.arange(1, 51) ** -1.0
    counts = shares_of(first) * 30_000

    assert np.abs(counts - law / law.sum() * 30_000).max() <= 1
    assert np.array_equal(shares_of(other), shares_of(first))
    hottest = np.flatnonzero(
        first == np.unique(first)[np.unique(first, return_counts=True)[1].argmax()]
    )
    assert hottest[: hottest.size // 2].max() == pytest.approx(15_000, rel=0.05)


def test_tweets_have_three_costs_and_a_first_entity_of_6_5_percent() -> None:
    (chunk, *_) = open_trace("tweets-like").chunks()

    assert chunk.costs is not None
    assert set(chunk.costs.tolist()) == {1.0, 5.0, 25.0}
    assert shares_of(chunk.keys)[0] == pytest.approx(0.065, abs=0.003)


def test_trades_like_has_other_symbols_in_front_every_phase() -> None:
    keys = keys_of(open_trace("trades-like"))
    phases = np.split(keys, 4)
    shares = [shares_of(phase) for phase in phases]

    assert np.unique(keys).size == pytest.approx(2900, abs=5)
    assert [share[0] for share in shares] == pytest.approx([0.033] * 4, abs=0.002)
    assert len({Counter(phase.tolist()).most_common(1)[0][0] for phase in phases}) == 4


def test_uniform_over_very_many_keys_is_nearly_all_distinct() -> None:
    assert shares_of(keys_of(open_trace(f"uniform:keys={2**60},records=10000"))).size == 10_000


def test_xxhash64_has_the_published_values() -> None:
    def digest(content: bytes, seed: int = 0) -> str:
        buffer = np.frombuffer(content, np.uint8)
        return f"{int(xxhash64(buffer, 0, buffer.size, np.uint64(seed))):016x}"

    assert digest(b"") == "ef46db3751d8e999"
    assert digest(b"abc") == "44bc2cf5ad770999"
    assert digest(b"Nobody inspects the spammish repetition") == "fbcea83c8a378bf1"


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        ("", -7444071767201028348),
        ("abc", 1423657621850124518),
        ("ä€", -4851843424095528840),
        ("x" * 31, -1716462135722163746),
        ("The quick brown fox jumps over the lazy dog, twice and more.", -3231491825087225655),
    ],
)
def test_text_is_hashed_as_by_spark(text: str, signed: int) -> None:
    # SELECT xxhash64(text), by Spark 4.2.0.
    assert int(hash_text(text)) == signed % 2**64


def test_file_has_a_key_a_line(tmp_path) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes("ä\r\nb\n\nä\nlast without an end".encode())

    keys = keys_of(open_trace(f"file:{path}"))

    assert keys.tolist() == [hash_text(text) for text in ("ä", "b", "ä", "last without an end")]


def test_blocks_of_a_file_change_nothing(tmp_path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("\n".join(f"key {number % 77}" for number in range(1000)))

    whole = np.concatenate(list(read_keys(path)))

    assert np.array_equal(np.concatenate(list(read_keys(path, 16))), whole)


def test_endless_line_is_refused(tmp_path) -> None:
    path = tmp_path / "keys.bin"
    path.write_bytes(b"x" * 1000)

    with pytest.raises(GroupingError, match="a line of more than 64 bytes"):
        list(read_keys(path, 64))


def test_shrinking_file_is_an_error_and_a_growing_one_is_cut(tmp_path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("a\nb\n")
    trace = open_trace(f"file:{path}")

    path.write_text("a\nb\nc\n")
    assert keys_of(trace).size == 2
    path.write_text("a\n")
    with pytest.raises(GroupingError, match="has become shorter"):
        keys_of(trace)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("zip", 'trace: unknown "zip"; did you mean "zipf"?'),
        ("", 'trace: unknown ""; one of zipf, zipf-drift, flash'),
        ("zipf:z=-1", "trace zipf.z: at least 0 (got -1)"),
        ("zipf:z=.nan", "trace zipf.z: a finite number (got nan)"),
        ("zipf:z=nan", 'trace zipf.z: a number (got "nan")'),
        ("zipf:key=5", 'trace zipf.key: unknown option; did you mean "keys"?'),
        ("zipf:z", 'trace zipf: option=value expected (got "z")'),
        ("zipf:z=1,z=2", "trace zipf.z: given twice"),
        ("zipf:records=0", "trace zipf.records: at least 1 (got 0)"),
        ("zipf:keys=yes", 'trace zipf.keys: a whole number (got "yes")'),
        ("flash:begin=0.9,end=0.1", "trace flash: begin must not be after end (got 0.9 and 0.1)"),
        (
            "posg-costs:cost_min=9,cost_max=2",
            "trace posg-costs: cost_min must not be above cost_max (got 9.0 and 2.0)",
        ),
        ("file", "trace: file: a path is missing, file:PATH"),
        ("file:/no/such", "trace: /no/such: no such file"),
        ("file:/dev", "trace: /dev: not a regular file"),
        (f"file:{'a' * 5000}", f"trace: {'a' * 5000}: File name too long"),
    ],
)
def test_wrong_spec_names_the_field_and_the_rule(spec: str, problem: str) -> None:
    with pytest.raises(SpecError) as error:
        open_trace(spec)

    assert error.value.problems[0].startswith(problem)


def test_all_problems_of_a_spec_come_at_once() -> None:
    with pytest.raises(SpecError) as error:
        open_trace("zipf:z=-1,keys=0,nope=1")

    assert len(error.value.problems) == 3


def test_empty_file_is_refused(tmp_path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("\n\n")

    with pytest.raises(SpecError, match="no keys in it, one a line is expected"):
        open_trace(f"file:{path}")


def test_values_are_yaml_scalars() -> None:
    values = [scalar(text) for text in ("1", "-2.5", "1e-4", "true", "yes", "~", "[1,2]", '"7"')]

    assert values == [1, -2.5, 0.0001, True, "yes", None, [1, 2], "7"]
    assert parse_spec("grouping", "a:b=[1,2],c=x=y") == ("a", {"b": [1, 2], "c": "x=y"})
