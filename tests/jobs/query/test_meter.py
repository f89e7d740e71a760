from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tests.support.oracles import EPOCH, WINDOWS
from tests.support.oracles import windows_of as oracle
from unskew.config.models.window import NoWindow, SlidingWindow, TumblingWindow
from unskew.jobs.query.meter import make_windows

MODELS: dict[str, Any] = {"tumbling": TumblingWindow, "sliding": SlidingWindow}


@pytest.mark.parametrize("kind", MODELS)
def test_the_last_end_is_that_of_the_last_of_all_windows(kind: str) -> None:
    windows = make_windows(MODELS[kind].model_validate(WINDOWS[kind]))
    assert windows is not None
    seconds = range(-100, 100, 10)
    panes = np.array([second * 1_000_000 for second in seconds])
    expected = [
        max(end for _, end in oracle(EPOCH + timedelta(seconds=second), WINDOWS[kind]))
        for second in seconds
    ]
    ends = windows.find_last_ends(
        panes - panes % (20_000_000 if kind == "tumbling" else 10_000_000)
    )
    assert [EPOCH + timedelta(microseconds=end) for end in ends.tolist()] == expected


def test_without_windows_nothing_ends() -> None:
    assert make_windows(NoWindow()) is None
