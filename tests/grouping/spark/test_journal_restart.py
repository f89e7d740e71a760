"""What a restart does to a journal, and what it keeps beside the states."""

import errno
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support.checkpoints import newest_state
from unskew.grouping.errors import TakenOverError
from unskew.grouping.spark.journal import KEPT_BATCHES, Journal
from unskew.grouping.spark.router import Router
from unskew.grouping.spark.routing_file import Routes, RoutingStats


class Clock:
    """Each look is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def chunks() -> Iterator[pa.Array]:
    for seed in range(3):
        yield pa.array(np.random.default_rng(seed).integers(0, 50, 100))


def routed(router: Router) -> list[int]:
    return [route for part in router.route_keys(chunks()) for route in part.to_pylist()]


def routing_seconds(journal: Journal) -> dict[int, float]:
    """The time of routing batch 0, by source."""
    return {source: routing.seconds for source, routing in journal.read_routing_stats(0).items()}


def test_routing_seconds_are_kept_once_and_are_no_part_of_the_state(tmp_path: Path) -> None:
    timed = Router("level", 4, journal=Journal(str(tmp_path / "timed")), clock=Clock())
    plain = Router("level", 4, journal=Journal(str(tmp_path / "plain")))
    assert routed(timed) == routed(plain)
    both = [router.journal for router in (timed, plain)]
    assert both[0] is not None
    assert both[1] is not None
    assert both[0].states(0)[0].checksum() == both[1].states(0)[0].checksum()
    seconds = routing_seconds(both[0])
    assert routing_seconds(both[1]) == {}
    assert not both[0].write_routing(0, 0, RoutingStats(99.0))
    assert routing_seconds(both[0]) == seconds


def test_a_sources_hot_keys_and_signals_are_in_the_journal(tmp_path: Path) -> None:
    router = Router("level", 4, journal=Journal(str(tmp_path)), clock=Clock())
    grouping = router.restore_grouping(0, 0)
    hashes = np.where(np.arange(400) % 2, np.arange(400), 7)
    list(router.route_keys(iter([pa.array(hashes, pa.int64())])))
    for _ in grouping.route_chunks([(hashes.astype(np.uint64), None)]):
        pass
    assert router.journal is not None
    routing = router.journal.read_routing_stats(0)[0]
    assert routing.hot_keys.tolist() == grouping.hot_keys().tolist()
    assert 7 in routing.hot_keys
    assert routing.signals == grouping.signals()


def test_the_journal_knows_routes_by_number_and_checksum(tmp_path: Path) -> None:
    routes_of = {}
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        journal = Journal(str(tmp_path / name))
        routes = np.array(routed(Router("w_choices", 4, seed, journal=journal)), np.int32)
        routes_of[name] = journal.routes(0)[0]
        cut = Routes().add(routes[:7]).add(routes[7:])
        assert routes_of[name] == Routes().add(routes) == cut
    assert routes_of["first"].records == 300
    assert routes_of["first"] == routes_of["again"]
    assert routes_of["first"].checksum != routes_of["other"].checksum


def test_waiting_for_rows_is_no_routing(tmp_path: Path) -> None:
    clock = Clock()

    def slow() -> Iterator[pa.Array]:
        for chunk in chunks():
            clock.now += 1000
            yield chunk

    journal = Journal(str(tmp_path))
    list(Router("key", 4, journal=journal, clock=clock).route_keys(slow()))
    (seconds,) = routing_seconds(journal).values()
    assert 0 < seconds < 20


def test_batches_that_were_not_committed_are_dropped(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    for batch in (3, 4, 5):
        journal.write_routing(batch, 0, RoutingStats(1.0))
    journal.drop_from(5)
    assert journal.batches() == [3, 4]
    journal.drop_from(9)
    journal.drop_from(0)
    assert journal.batches() == []


def test_dropped_states_leave_reports_and_the_rest(tmp_path: Path) -> None:
    router = Router("fish", 4, journal=Journal(str(tmp_path)), clock=Clock())
    routed(router)
    journal = router.journal
    assert journal is not None
    seconds = routing_seconds(journal)
    journal.drop_states()
    assert journal.states(0) == {}
    assert journal.count_newest_sources(1) == 0
    assert routing_seconds(journal) == seconds
    assert journal.routes(0)[0].records == 300


def test_what_may_be_purged_between_two_attempts_is_not_looked_at(tmp_path: Path) -> None:
    router = Router("fish", 4, journal=Journal(str(tmp_path)))
    journal = router.journal
    assert journal is not None
    journal.write_state(5, 0, router.restore_grouping(5, 0).snapshot())
    newest = 5 + KEPT_BATCHES
    assert newest_state(journal, newest, 0) is not None
    assert journal.count_newest_sources(newest) == 1
    # The service may purge now, or a moment later.
    assert newest_state(journal, newest + 1, 0) is None
    assert journal.count_newest_sources(newest + 1) == 0
    journal.purge(newest - KEPT_BATCHES)
    assert newest_state(journal, newest, 0) is not None


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.EIO])
def test_a_disk_without_hard_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, "no links here")

    monkeypatch.setattr(os, "link", fail)
    journal = Journal(str(tmp_path))
    if number == errno.EIO:
        with pytest.raises(OSError, match="no links here"):
            journal.write_routing(0, 0, RoutingStats(1.0))
        return
    assert journal.write_routing(0, 0, RoutingStats(1.0))
    assert not journal.write_routing(0, 0, RoutingStats(2.0))
    assert routing_seconds(journal) == {0: 1.0}
    assert [path.name for path in (tmp_path / "000000000000").iterdir()] == ["source-00000.routing"]


def test_a_start_that_was_taken_over_writes_nothing_more(tmp_path: Path) -> None:
    first, second = (Journal(str(tmp_path), owner=owner) for owner in ("first", "second"))
    first.take_over()
    assert first.write_routing(0, 0)
    second.take_over()
    sent = pickle.loads(pickle.dumps(first))  # noqa: S301 - as Spark sends it to tasks
    for frozen in (first, sent):
        with pytest.raises(TakenOverError, match="another start of the job took it over"):
            frozen.write_routing(1, 0)
    assert first.batches() == [0]
    assert second.write_routing(1, 0)
    assert Journal(str(tmp_path)).write_routing(2, 0), "a journal without a service has no owner"
