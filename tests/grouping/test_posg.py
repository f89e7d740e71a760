"""POSG: facts of paper 004, both state machines step by step, and its bound by brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.base import Feedback, Grouping
from grouping.errors import GroupingError
from grouping.posg import PosgParams
from grouping.registry import create

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = range(4)


def executed(
    partitions: int, rows: list[tuple[int, int, float]], records: int = 1, rest: float = 0.0
) -> Feedback:
    """Rows of (partition, key, seconds), each of so many records; `rest` seconds without a row."""
    where = np.array([row[0] for row in rows], np.int32)
    seconds = np.array([row[2] for row in rows], np.float64)
    return Feedback(
        np.bincount(where, minlength=partitions).astype(np.int64) * records,
        np.bincount(where, seconds, partitions) + rest,
        where,
        np.array([row[1] for row in rows], np.uint64),
        np.full(len(rows), records, np.int64),
        seconds,
    )


def route(posg: Grouping, keys: list[int], times: list[int] | None = None) -> list[int]:
    stamps = None if times is None else np.array(times, np.int64)
    return posg.route(np.array(keys, np.uint64), stamps).tolist()


def scheduler_state(posg: Grouping) -> int:
    return int(posg.signals()["scheduler_state"])


def taught(costs: list[list[float]], **options: object) -> Grouping:
    """In SEND_ALL, each instance's costs of the keys 0, 1, ... known exactly."""
    n, keys = len(costs), len(costs[0])
    posg = create("posg", partitions=n, seed=1, epsilon=0.005, window=keys, **options)
    rows = [(p, key, costs[p][key]) for p in range(n) for _ in range(2) for key in range(keys)]
    posg.begin_batch(executed(n, rows))
    return posg


def test_defaults_are_the_papers() -> None:
    posg = create("posg", partitions=5)

    assert PosgParams().model_dump() == {
        "epsilon": 0.05,
        "delta": 0.1,
        "window": 1024,
        "tolerance": 0.05,
        "memory": "batch",
        "lift": True,
    }
    assert posg.state["instance_records"].shape == (5, 4, 55)


def test_papers_example_of_section_two() -> None:
    """a, b, a with costs 10, 1, 10: round robin waits 8 s, POSG sends the last a after b."""
    posg = taught([[10.0, 1.0]] * 2)

    assert route(posg, [0, 1, 0]) == [0, 1, 1]
    assert route(create("shuffle", partitions=2), [0, 1, 0]) == [0, 1, 0]


class TestInstance:
    """Figure 2."""

    def test_start_takes_a_snapshot_after_a_window(self) -> None:
        posg = create("posg", partitions=1, window=4)
        posg.begin_batch(executed(1, [(0, 7, 1.0)] * 3))
        assert posg.state["instance_phase"].tolist() == [0]
        assert not posg.state["instance_snapshot"].any()

        posg.begin_batch(executed(1, [(0, 7, 5.0)]))

        assert posg.state["instance_phase"].tolist() == [1]
        snapshot = posg.state["instance_snapshot"]
        assert snapshot[snapshot > 0].tolist() == [2.0] * 4

    def test_unstable_matrices_renew_the_snapshot(self) -> None:
        posg = create("posg", partitions=1, window=2)
        posg.begin_batch(executed(1, [(0, 7, 1.0)] * 2 + [(0, 7, 2.0)] * 2))

        snapshot = posg.state["instance_snapshot"]
        assert snapshot[snapshot > 0].tolist() == [1.5] * 4
        assert posg.state["instance_records"].max() == 4
        assert posg.signals()["matrices_received"] == 0

    def test_stable_matrices_are_sent_and_begun_anew(self) -> None:
        posg = create("posg", partitions=1, window=2)
        posg.begin_batch(executed(1, [(0, 7, 1.0)] * 4))

        assert posg.signals()["matrices_received"] == 1
        assert posg.state["instance_phase"].tolist() == [0]
        assert not posg.state["instance_records"].any()
        assert not posg.state["instance_seconds"].any()
        assert posg.state["costs"][0, :, :, 0].max() == 4
        assert posg.state["costs"][0, :, :, 1].max() == 1

    @pytest.mark.parametrize(("tolerance", "sent"), [(0.101, 1), (0.099, 0)])
    def test_tolerance_decides(self, tolerance: float, sent: int) -> None:
        """The ratio goes from 1.0 to 1.1."""
        posg = create("posg", partitions=1, window=2, tolerance=tolerance)
        posg.begin_batch(executed(1, [(0, 7, 1.0)] * 2 + [(0, 7, 1.2)] * 2))

        assert posg.signals()["matrices_received"] == sent

    def test_a_row_counts_all_its_records(self) -> None:
        posg = create("posg", partitions=1, window=600)
        posg.begin_batch(executed(1, [(0, 7, 50.0)], records=500))

        assert posg.state["instance_records"].max() == 500
        assert posg.state["instance_seconds"].max() == 50
        assert posg.state["instance_window"].tolist() == [500]

    def test_windows_end_with_the_batch_when_rows_have_lost_their_order(self) -> None:
        posg = create("posg", partitions=1, window=100)
        batch = executed(1, [(0, key, 1.0) for key in range(9)], records=500)
        posg.begin_batch(batch)
        assert posg.state["instance_phase"].tolist() == [1]

        posg.begin_batch(batch)

        assert posg.signals()["matrices_received"] == 1

    def test_without_rows_every_key_costs_the_mean(self) -> None:
        posg = create("posg", partitions=2, window=10)
        batch = Feedback(np.array([100, 100]), np.array([1.0, 3.0]))
        posg.begin_batch(batch)
        posg.begin_batch(batch)

        assert posg.state["costs"][0, :, :, 1] == pytest.approx(0.01)
        assert posg.state["costs"][1, :, :, 1] == pytest.approx(0.03)
        targets = route(posg, list(range(4000)))
        assert targets.count(0) == pytest.approx(3000, abs=2)

    def test_every_source_has_the_same_instances(self) -> None:
        sources = [create("posg", partitions=2, source=s, sources=3, window=2) for s in range(3)]
        for posg in sources:
            posg.begin_batch(executed(2, [(0, 7, 1.0), (1, 8, 2.0)] * 3))

        for name in ("instance_records", "instance_seconds", "costs", "known"):
            arrays = [posg.state[name] for posg in sources]
            assert all(np.array_equal(arrays[0], array) for array in arrays)


class TestScheduler:
    """Figure 3."""

    def test_round_robin_until_every_instance_has_sent(self) -> None:
        posg = create("posg", partitions=3, window=1)
        assert route(posg, [7] * 5) == [0, 1, 2, 0, 1]

        posg.begin_batch(executed(3, [(p, 7, 1.0) for p in (0, 0, 1, 1, 2)]))
        assert scheduler_state(posg) == ROUND_ROBIN
        assert posg.state["known"].tolist() == [1, 1, 0]
        assert route(posg, [7] * 4) == [2, 0, 1, 2]

        posg.begin_batch(executed(3, [(2, 7, 1.0)]))
        assert scheduler_state(posg) == SEND_ALL

    def test_send_all_asks_each_instance_by_round_robin(self) -> None:
        posg = taught([[4.0, 1.0]] * 3)
        assert scheduler_state(posg) == SEND_ALL

        assert route(posg, [0, 1]) == [0, 1]
        assert scheduler_state(posg) == SEND_ALL
        assert route(posg, [0]) == [2]

        assert scheduler_state(posg) == WAIT_ALL
        assert posg.state["marker_estimated"] == pytest.approx(np.array([4.0, 1.0, 4.0]))

    def test_wait_all_schedules_greedily(self) -> None:
        posg = taught([[4.0, 1.0]] * 3)
        assert route(posg, [0, 1, 0, 1, 1, 0, 1]) == [0, 1, 2, 1, 1, 1, 0]
        assert scheduler_state(posg) == WAIT_ALL

    def test_answers_lead_to_run_and_correct_the_estimates(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, memory="stream", lift=False)
        route(posg, [0, 0, 0, 0])
        assert posg.state["estimated"] == pytest.approx(np.array([2.0, 2.0]))

        posg.begin_batch(executed(2, [(0, 0, 1.5)]))
        assert scheduler_state(posg) == WAIT_ALL
        assert posg.state["replied"].tolist() == [1, 0]

        posg.begin_batch(executed(2, [(1, 0, 0.75)]))
        assert scheduler_state(posg) == RUN
        assert posg.state["delta"] == pytest.approx(np.array([0.5, -0.25]))
        assert posg.state["estimated"] == pytest.approx(np.array([2.5, 1.75]))
        assert posg.signals()["drift_seconds"] == pytest.approx(0.5)
        assert route(posg, [0, 0]) == [1, 0]

    def test_an_answer_counts_up_to_the_asking_record_only(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, memory="stream", lift=False)
        route(posg, [0, 0, 0, 0])
        posg.begin_batch(executed(2, [(0, 0, 1.5), (0, 0, 9.0), (1, 0, 1.0), (1, 0, 9.0)]))

        assert posg.state["delta"] == pytest.approx(np.array([0.5, 0.0]))

    def test_rows_without_order_are_compared_with_all_that_was_sent(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, memory="stream", lift=False)
        route(posg, [0] * 8)
        posg.begin_batch(executed(2, [(0, 0, 6.0), (1, 0, 4.0)], records=4))

        assert posg.state["delta"] == pytest.approx(np.array([2.0, 0.0]))

    def test_first_synchronisation_covers_the_round_robin_time(self) -> None:
        posg = create("posg", partitions=2, window=1, seed=1, memory="stream", lift=False)
        route(posg, [7] * 4)
        posg.begin_batch(executed(2, [(0, 7, 1.0), (0, 7, 1.0), (1, 7, 3.0), (1, 7, 3.0)]))
        assert scheduler_state(posg) == SEND_ALL
        route(posg, [7, 7])
        posg.begin_batch(executed(2, [(0, 7, 1.0), (1, 7, 3.0)]))

        assert posg.state["busy"].tolist() == [3.0, 9.0]
        assert posg.state["estimated"] == pytest.approx(np.array([3.0, 9.0]))

    def test_new_matrices_begin_a_new_epoch_in_any_later_state(self) -> None:
        posg = taught([[1.0, 1.0]] * 2)
        route(posg, [0, 0, 0])
        assert scheduler_state(posg) == WAIT_ALL
        posg.begin_batch(executed(2, [(0, 0, 1.0), (1, 0, 1.0)]))
        assert scheduler_state(posg) == RUN

        posg.begin_batch(executed(2, [(0, key % 2, 1.0) for key in range(8)]))

        assert scheduler_state(posg) == SEND_ALL
        assert posg.state["asked"].tolist() == [0, 0]

    def test_a_batch_begins_with_idle_partitions(self) -> None:
        posg = taught([[1.0, 2.0]] * 2)
        first = route(posg, [1, 0, 0, 0, 1])
        posg.begin_batch()

        assert posg.state["estimated"].tolist() == [0.0, 0.0]
        assert route(posg, [1, 0, 0, 0, 1]) == first

    def test_slow_instances_get_fewer_records(self) -> None:
        posg = taught([[1.0, 1.0], [3.0, 3.0]])

        assert route(posg, [0] * 4000).count(0) == pytest.approx(3000, abs=1)

    def test_sources_repay_an_excess_once_together(self) -> None:
        """Instance 0 took 6 s longer than estimated: of two sources each corrects by 3 s."""
        options = {"epsilon": 0.005, "window": 100, "memory": "stream", "lift": False}
        sources = [
            create("posg", partitions=2, source=s, sources=2, seed=1, **options) for s in (0, 1)
        ]
        for posg in sources:
            posg.begin_batch(executed(2, [(p, 0, 1.0) for p in (0, 1) for _ in range(200)]))
            route(posg, [0] * 12)
            posg.begin_batch(executed(2, [(0, 0, 18.0), (1, 0, 12.0)], records=12))

        assert [scheduler_state(posg) for posg in sources] == [RUN, RUN]
        for posg in sources:
            assert posg.state["delta"] == pytest.approx(np.array([3.0, 0.0]))


class TestIdlePartitions:
    """`memory: stream` with `lift`."""

    def test_partition_that_ran_dry_is_lifted_to_now(self) -> None:
        posg = taught([[1.0, 4.0]] * 2, memory="stream")
        second = 1_000_000
        route(posg, [1, 0], [0, 0])

        # At 20 s both have been idle for long: neither owes the other what it did not do.
        assert route(posg, [1, 0, 0, 0, 0], [20 * second] * 5) == [1, 0, 0, 0, 0]
        assert posg.state["estimated"] == pytest.approx(np.array([24.0, 24.0]))

    def test_without_lift_the_sums_are_the_papers(self) -> None:
        posg = taught([[1.0, 4.0]] * 2, memory="stream", lift=False)
        assert not posg.wants_timestamps
        route(posg, [1, 0])

        assert route(posg, [1, 0, 0, 0, 0]) == [1, 0, 0, 1, 0]

    def test_late_timestamps_do_not_turn_time_back(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, memory="stream")
        route(posg, [0, 0, 0], [-5, 10_000_000, -(2**63)])

        assert posg.state["clock"].tolist() == [-5, 10_000_000]
        assert posg.state["estimated"].max() < 13

    def test_answer_is_the_difference_from_now(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, memory="stream")
        route(posg, [0, 0, 0, 0], [0, 0, 0, 1_500_000])
        posg.begin_batch(executed(2, [(0, 0, 1.5), (1, 0, 1.0)]))

        # At 1.5 s each has one of two records to do: both will be done 1 s from now.
        assert scheduler_state(posg) == RUN
        assert posg.state["estimated"] == pytest.approx(np.array([2.5, 2.5]))


class TestPartitionsComeAndGo:
    def test_inactive_partitions_get_nothing_and_nobody_waits_for_them(self) -> None:
        posg = create("posg", partitions=3, window=1)
        posg.set_active([0, 2])
        assert route(posg, [7] * 4) == [0, 2, 0, 2]
        posg.begin_batch(executed(3, [(0, 7, 1.0), (2, 7, 1.0)] * 2))
        assert route(posg, [7] * 4) == [0, 2, 0, 2]
        posg.begin_batch(executed(3, [(0, 7, 1.0), (2, 7, 1.0)]))

        assert scheduler_state(posg) == RUN

    def test_last_one_asked_leaves(self) -> None:
        posg = taught([[1.0, 1.0]] * 3)
        route(posg, [0, 0])
        posg.set_active([0, 1])

        assert scheduler_state(posg) == WAIT_ALL
        assert set(route(posg, [0] * 10)) == {0, 1}

    def test_partition_that_returns_owes_nothing(self) -> None:
        posg = taught([[1.0, 1.0]] * 3, memory="stream", lift=False)
        posg.set_active([0, 1])
        route(posg, [0] * 100)
        posg.set_active([0, 1, 2])

        assert route(posg, [0] * 90).count(2) == 30

    def test_unknown_partition_costs_the_others_mean(self) -> None:
        posg = create("posg", partitions=3, window=1)
        posg.set_active([0, 1])
        posg.begin_batch(executed(3, [(0, 7, 1.0), (0, 7, 1.0), (1, 7, 3.0), (1, 7, 3.0)]))
        posg.set_active([0, 1, 2])
        targets = route(posg, [7] * 1100)

        assert [targets.count(p) for p in range(3)] == pytest.approx([600, 200, 300], abs=3)

    def test_restore_in_mid_epoch_goes_on_identically(self) -> None:
        posg = taught([[1.0, 2.0, 0.5]] * 4, memory="stream", lift=False)
        posg.set_active([0, 1, 3])
        route(posg, [0, 1])
        other = create("posg", partitions=4, seed=1, epsilon=0.005, window=3, **STREAM)
        other.restore(posg.snapshot())
        keys = [0, 1, 2, 2, 1, 0, 0] * 9

        assert route(posg, keys) == route(other, keys)
        assert posg.snapshot().checksum() == other.snapshot().checksum()


STREAM: dict[str, object] = {"memory": "stream", "lift": False}


def best_makespan(costs: list[int], partitions: int) -> int:
    return min(
        max(sum(c for c, p in zip(costs, plan, strict=True) if p == q) for q in range(partitions))
        for plan in product(range(partitions), repeat=len(costs))
    )


@settings(deadline=None, max_examples=60)
@given(partitions=st.integers(1, 3), costs=st.lists(st.integers(1, 9), min_size=1, max_size=7))
def test_makespan_is_within_two_minus_one_kth_of_the_best(
    partitions: int, costs: list[int]
) -> None:
    kinds = sorted(set(costs))
    posg = taught([[float(cost) for cost in kinds]] * partitions)
    targets = route(posg, [kinds.index(cost) for cost in costs])
    loads = np.bincount(targets, costs, partitions)

    assert loads.max() <= (2 - 1 / partitions) * best_makespan(costs, partitions) + 1e-6


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_bound_is_tight(k: int) -> None:
    """After k (k - 1) records of w / k comes one of w: the optimum is w."""
    posg = taught([[1.0, float(k)]] * k)
    keys = [0] * (k * (k - 1)) + [1]
    loads = np.bincount(route(posg, keys), np.array([1.0, float(k)])[keys], k)

    assert loads.max() == 2 * k - 1


class TestBadInput:
    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("epsilon", 0.0),
            ("epsilon", float("nan")),
            ("delta", 1.0),
            ("delta", -0.1),
            ("window", 0),
            ("window", 1.5),
            ("tolerance", -1.0),
            ("memory", "epoch"),
            ("lift", "yes"),
        ],
    )
    def test_bad_option_is_named(self, option: str, value: object) -> None:
        with pytest.raises(GroupingError, match=rf"posg\.{option}: "):
            create("posg", partitions=2, **{option: value})

    def test_too_many_cells_are_refused(self) -> None:
        with pytest.raises(GroupingError, match=r"posg\.epsilon: 10000 partitions x 4 rows"):
            create("posg", partitions=10_000, epsilon=0.001)

    def test_costs_of_zero_spread_like_shuffle(self) -> None:
        posg = create("posg", partitions=4, window=1)
        posg.begin_batch(executed(4, [(p, 7, 0.0) for p in (0, 1, 2, 3)] * 2))
        assert scheduler_state(posg) == SEND_ALL

        assert np.bincount(route(posg, [7] * 400), minlength=4).tolist() == [100] * 4

    def test_empty_feedback_changes_nothing(self) -> None:
        posg = create("posg", partitions=3)
        before = posg.snapshot().checksum()
        posg.begin_batch(Feedback(np.zeros(3, np.int64), np.zeros(3)))
        posg.begin_batch()

        assert posg.snapshot().checksum() == before

    def test_rows_of_no_records_are_no_costs(self) -> None:
        posg = create("posg", partitions=1, window=1)
        posg.begin_batch(executed(1, [(0, 7, 1.0)], records=0))

        assert not posg.state["instance_records"].any()

    def test_state_does_not_grow_with_keys(self) -> None:
        posg = create("posg", partitions=8, window=100)
        size = sum(array.nbytes for array in posg.state.values())
        for batch in range(5):
            keys = np.arange(batch * 10_000, (batch + 1) * 10_000, dtype=np.uint64)
            targets = posg.route(keys)
            ones = np.ones(keys.size)
            posg.begin_batch(
                Feedback(
                    np.bincount(targets, minlength=8).astype(np.int64),
                    np.bincount(targets, ones, 8),
                    targets,
                    keys,
                    ones.astype(np.int64),
                    ones,
                )
            )

        assert sum(array.nbytes for array in posg.state.values()) == size
        assert size / 8 < 7_300
