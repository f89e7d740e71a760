"""POSG: both state machines step by step, idle partitions, reports, partitions that come and go."""

import numpy as np
import pytest

from tests.support.posg_reports import (
    ROUND_ROBIN,
    RUN,
    SEND_ALL,
    WAIT_ALL,
    executed,
    route,
    scheduler_state,
    taught,
)
from unskew.grouping.base import Feedback, Grouping
from unskew.grouping.registry import create


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
        second = 1_000_000
        assert route(posg, [0, 0, 0, 0], [0, 10 * second, 10 * second, 11 * second]) == [0, 1, 0, 0]
        posg.begin_batch(executed(2, [(0, 0, 1.0), (1, 0, 1.0), (0, 0, 1.0)]))

        # At 11 s instance 0 has one record left to do, and instance 1 is idle.
        assert scheduler_state(posg) == RUN
        assert posg.state["estimated"] == pytest.approx(np.array([12.0, 11.0]))

    def test_reports_of_queued_records_are_not_taken_for_idle_partitions(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, memory="stream")
        second = 1_000_000
        route(posg, [0, 0], [0, 10 * second])
        posg.begin_batch(executed(2, [(0, 0, 1.0), (1, 0, 1.0)]))
        posg.begin_batch(executed(2, [(0, 0, 30.0), (1, 0, 2.0)]))
        posg.begin_batch(executed(2, [(0, 0, 1.0), (1, 0, 0.5)]))

        assert posg.state["free"] == pytest.approx(np.array([41.0, 12.5]))

    def test_each_of_several_sources_has_its_share_of_a_partition(self) -> None:
        """Of four sources each: a record of 1 s is done 4 s later."""
        posg = create(
            "posg", partitions=2, sources=4, seed=1, epsilon=0.005, window=1, memory="stream"
        )
        posg.begin_batch(executed(2, [(p, 0, 1.0) for p in (0, 1) for _ in range(2)]))
        route(posg, [0, 0, 0], [0, 0, 0])

        assert posg.state["estimated"] == pytest.approx(np.array([8.0, 4.0]))


class TestSynchroniseWithReports:
    def test_each_report_answers_and_asks_again(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, memory="stream", lift=False, synchronise="reports")
        route(posg, [0, 0])
        posg.begin_batch(executed(2, [(0, 0, 1.5), (1, 0, 1.0)]))
        assert posg.signals()["synchronisations"] == 1
        assert scheduler_state(posg) == WAIT_ALL

        assert route(posg, [0, 0, 0]) == [1, 0, 1]
        posg.begin_batch(executed(2, [(1, 0, 1.0), (0, 0, 1.5), (1, 0, 1.0)]))

        assert posg.signals()["synchronisations"] == 2
        assert posg.state["estimated"] == pytest.approx(np.array([3.0, 3.0]))

    def test_a_batch_needs_no_more_than_its_start(self) -> None:
        posg = taught([[1.0, 1.0]] * 2, synchronise="reports")
        route(posg, [0, 0])
        posg.begin_batch(executed(2, [(0, 0, 1.5), (1, 0, 1.0)]))

        assert scheduler_state(posg) == RUN


class TestSynchroniseByRecords:
    def run(self, **options: object) -> Grouping:
        """In RUN, one record sent to each of two instances since they were asked."""
        posg = taught([[1.0] * 8] * 2, memory="stream", lift=False, **options)
        route(posg, [0, 0])
        posg.begin_batch(executed(2, [(0, 0, 1.5), (1, 0, 1.0)]))
        assert scheduler_state(posg) == RUN
        return posg

    def test_the_records_after_so_many_carry_the_requests(self) -> None:
        posg = self.run(synchronise_records=3)
        targets = route(posg, [0, 0, 0])
        assert scheduler_state(posg) == RUN
        targets += route(posg, [0])
        assert scheduler_state(posg) == SEND_ALL
        targets += route(posg, [0])
        assert scheduler_state(posg) == WAIT_ALL
        posg.begin_batch(executed(2, [(target, 0, 1.0) for target in targets]))

        assert scheduler_state(posg) == RUN
        assert posg.signals()["synchronisations"] == 2

    def test_without_the_option_they_wait_for_matrices(self) -> None:
        posg = self.run()
        route(posg, [0] * 1000)

        assert scheduler_state(posg) == RUN

    def test_how_records_are_cut_changes_no_route(self) -> None:
        whole, cut = (self.run(synchronise_records=5) for _ in range(2))
        routes = [target for _ in range(40) for target in route(cut, [0])]

        assert route(whole, [0] * 40) == routes
        assert whole.snapshot().checksum() == cut.snapshot().checksum()


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

    def test_partition_that_left_before_any_estimate_owes_nothing_either(self) -> None:
        posg = create("posg", partitions=3, window=1, seed=1, memory="stream", lift=False)
        route(posg, [7] * 6)
        posg.set_active([0, 1])
        posg.begin_batch(executed(3, [(op, 7, 1.0) for op in (0, 0, 1, 1, 2, 2)]))
        route(posg, [7] * 2)
        posg.begin_batch(executed(3, [(0, 7, 1.0), (1, 7, 1.0)]))
        assert scheduler_state(posg) == RUN
        assert posg.state["estimated"] == pytest.approx(np.array([3.0, 3.0, 0.0]))

        posg.set_active([0, 1, 2])
        assert posg.state["busy"] == pytest.approx(np.array([3.0, 3.0, 3.0]))
        assert sorted(route(posg, [7] * 6)) == [0, 0, 1, 1, 2, 2]

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
