from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.oracles import EPOCH, WINDOWS
from tests.support.oracles import windows_of as oracle
from unskew.config.models.window import NoWindow, SlidingWindow, TumblingWindow
from unskew.jobs.checkpoint.lateness import late_watermark, windows_of

MODELS: dict[str, Any] = {"tumbling": TumblingWindow, "sliding": SlidingWindow}


@pytest.mark.parametrize("kind", MODELS)
def test_the_last_end_is_that_of_the_last_of_all_windows(kind: str) -> None:
    windows = windows_of(MODELS[kind].model_validate(WINDOWS[kind]))
    assert windows is not None
    seconds = range(-100, 100, 10)
    panes = np.array([second * 1_000_000 for second in seconds])
    expected = [
        max(end for _, end in oracle(EPOCH + timedelta(seconds=second), WINDOWS[kind]))
        for second in seconds
    ]
    found = windows.last_ends(panes - panes % (20_000_000 if kind == "tumbling" else 10_000_000))
    assert [EPOCH + timedelta(microseconds=end) for end in found.tolist()] == expected


def test_without_windows_nothing_ends() -> None:
    assert windows_of(NoWindow()) is None


def test_the_watermark_is_of_the_batch_before_as_the_log_has_it(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "0").write_text('v1\n{"batchWatermarkMs":7,"conf":{}}\n{"logOffset":0}')
    (offsets / "1").write_text('v1\n{"batchWatermarkMs":9,"conf":{}}\n{"logOffset":1}')
    (offsets / "2").write_text("v1\n-\n-")
    (offsets / "4").mkdir()
    found = [late_watermark(str(tmp_path), batch) for batch in range(6)]
    assert found == [0, 7000, 9000, None, None, None]
