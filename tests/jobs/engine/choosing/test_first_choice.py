"""What `grouping: auto` begins with."""

from tests.support.auto_worlds import PARTITIONS, draw_keys
from unskew.grouping.choice.ways import LEVEL
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.loads import HASHED, LOCAL, Work
from unskew.jobs.engine.choosing.first_choice import FirstChoice, choose_by_model


def chosen(z: float, work: Work, *, spark_alone: bool = False) -> FirstChoice:
    keys = draw_keys(z, 10_000)
    return choose_by_model(keys, PARTITIONS, PARTITIONS, work, Constants(), spark_alone)


def test_what_spark_computes_itself_is_left_to_it_and_that_is_said_to_be_final() -> None:
    choice = chosen(1.4, Work(1e-6, native=True), spark_alone=True)

    assert choice.way == HASHED
    assert choice.why.endswith("this choice is final for the checkpoint")
    assert chosen(1.4, Work(1e-6, native=True)).way == LOCAL


def test_another_way_than_level_is_taken_where_it_is_surely_faster() -> None:
    # Without a hot key a hash is as even, and routes nothing.
    assert chosen(0.0, Work(30e-6, 1e-3)).way == HASHED
    assert chosen(1.4, Work(100e-6, 1e-3)).way == LEVEL
    cheap = chosen(1.6, Work(1e-6))
    assert cheap.way == LOCAL
    assert "local saves 0." in cheap.why
    # Nearly as fast is no reason to leave the one whose worst case is the mildest.
    assert chosen(0.8, Work(30e-6, 1e-3)).way == LEVEL
    assert chosen(1.4, Work(100e-6, 2.5e-4)).way == LEVEL
