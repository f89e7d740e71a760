"""When a query is up, stalled or failed, as metrics and as probes see it."""

from tests.support.displays.boards import samples
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health


def test_state_of_the_query_is_that_of_its_health() -> None:
    now = [0.0]
    health = Health(10.0, lambda: now[0])
    shown = Board("q", health)

    def state() -> tuple[list[str], float]:
        values = samples(shown)
        on = [
            dict(labels)["state"]
            for (name, labels), value in values.items()
            if name == "unskew_query_state" and value
        ]
        return on, values["unskew_query_up", ()]

    assert state() == (["starting"], 0)
    health.reset_stall_timer()
    assert state() == (["running"], 1)
    now[0] = 11.0
    assert state() == (["stalled"], 0)
    health.reset_stall_timer()
    health.on_state_changed("failed")
    assert state() == (["failed"], 0)


def test_a_slow_batch_raises_the_limit() -> None:
    now = [0.0]
    health = Health(10.0, lambda: now[0])
    health.reset_stall_timer(batch_seconds=5.0)
    now[0] = 49.0
    assert (health.alive, health.ready) == (True, True)
    now[0] = 51.0
    assert (health.alive, health.ready) == (False, False)


def test_while_a_fault_is_waited_out_the_job_is_alive_but_not_ready() -> None:
    health = Health(10.0, lambda: 0.0)
    health.reset_stall_timer()
    ready = [health.ready]
    health.on_state_changed("starting")  # by whoever starts queries again, before the wait
    ready.append(health.ready)
    alive = health.alive
    health.reset_stall_timer()
    assert (ready, alive, health.ready) == ([True, False], True, True)
