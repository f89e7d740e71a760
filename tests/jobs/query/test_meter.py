from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.oracles import EPOCH, WINDOWS
from tests.support.oracles import windows_of as oracle
from unskew import load_job
from unskew.config.models.window import SlidingWindow, TumblingWindow
from unskew.jobs.operators.base import EVENT_TIME, PANE
from unskew.jobs.query.meter import add_panes, find_last_ends
from unskew.jobs.query.prepare import is_time_of_arrival

MODELS: dict[str, Any] = {"tumbling": TumblingWindow, "sliding": SlidingWindow}


@pytest.mark.parametrize("kind", MODELS)
def test_the_last_end_is_that_of_the_last_of_all_windows(kind: str) -> None:
    windows = MODELS[kind].model_validate(WINDOWS[kind])
    seconds = range(-100, 100, 10)
    panes = np.array([second * 1_000_000 for second in seconds])
    expected = [
        max(end for _, end in oracle(EPOCH + timedelta(seconds=second), WINDOWS[kind]))
        for second in seconds
    ]
    ends = find_last_ends(
        windows, panes - panes % (20_000_000 if kind == "tumbling" else 10_000_000)
    )
    assert [EPOCH + timedelta(microseconds=end) for end in ends.tolist()] == expected


@pytest.mark.parametrize(("kind", "pane"), [("tumbling", 20_000_000), ("sliding", 10_000_000)])
def test_rows_of_one_pane_have_all_their_windows_in_common(kind: str, pane: int) -> None:
    windows = MODELS[kind].model_validate(WINDOWS[kind])
    micros = pa.array([-1, 0, 1, pane - 1, pane, 3 * pane + 5], pa.timestamp("us", "UTC"))
    rows = add_panes(pa.table({EVENT_TIME: micros}), windows)
    assert rows[PANE].to_pylist() == [-pane, 0, 0, 0, pane, 3 * pane]


def test_without_windows_all_rows_are_of_one_pane() -> None:
    times = pa.array([-1, 10**15], pa.timestamp("us", "UTC"))
    assert add_panes(pa.table({EVENT_TIME: times}), None)[PANE].to_pylist() == [0, 0]


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"event_time": "timestamp - interval 1 hour"}, False),
        ({"select": {"Timestamp": "timestamp - interval 1 hour"}}, False),
        ({"decode": {"type": "json", "schema": "value STRING, timestamp TIMESTAMP"}}, False),
    ],
    ids=["source", "expression", "select", "decoded"],
)
def test_a_row_brings_its_time_of_arrival_unless_that_is_its_event_time(
    changes: dict[str, Any], same: bool
) -> None:
    assert is_time_of_arrival(load_job("word_count", {"checkpoint": "unused", **changes})) is same
