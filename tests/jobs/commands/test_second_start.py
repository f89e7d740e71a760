"""A second `unskew run` on a checkpoint: refused before anything else is asked or started."""

import os
from pathlib import Path

import pytest

from unskew.jobs.__main__ import main
from unskew.jobs.checkpoint.lock import lock_checkpoint


def test_a_second_start_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Nobody listens there: a start that got further would name the brokers.
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    checkpoint = str(tmp_path / "checkpoint")
    with lock_checkpoint(checkpoint):
        code = main(["run", "word_count", "--log", "console", "--set", f"checkpoint={checkpoint}"])

    lines = [line for line in capsys.readouterr().err.splitlines() if "metrics url=" not in line]
    assert code == 1
    (line,) = lines
    assert line.startswith(f"checkpoint: {checkpoint}: in use by process {os.getpid()}; stop")
