"""What is said while kernels compile."""

import numba
import pytest

from unskew.grouping.simulation.batch_cost import WAYS, Machine, predict
from unskew.grouping.simulation.loads import Work
from unskew.grouping.simulation.streams.traces import open_trace
from unskew.jobs.commands.simulation.compiling import announce_compiling, show_steps

LINE = "compiling kernels, once on this machine; it may take minutes\n"


def test_a_compilation_is_told_once_and_what_is_compiled_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = (numba.njit(lambda x: x + 1), numba.njit(lambda x: x - 1))
    with announce_compiling():
        assert capsys.readouterr().err == ""
        assert (first(1), second(1)) == (2, 0)
    assert capsys.readouterr().err == LINE
    with show_steps("predicting") as begun:
        begun("level")
        first(2)
    assert capsys.readouterr() == ("", "")


def test_a_prediction_says_which_way_it_has_begun() -> None:
    keys = next(open_trace("zipf:keys=100,z=1,records=2000").chunks()).keys
    begun: list[str] = []
    ways = [way for way in WAYS if way in {"none", "local", "key", "shuffle"}]
    predict(ways, [keys, keys], 4, 2, Work(1e-5), Machine(4), begun.append)
    assert begun == ways
