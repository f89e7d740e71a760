"""What the demo shows and draws, by batches whose numbers are known."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.batches import done
from unskew.config.errors import ExternalError
from unskew.jobs.demo.results import Outcome, describe_left_out, draw, make_summary
from unskew.jobs.demo.run import describe_seconds, estimate_seconds
from unskew.jobs.demo.view import View


def shown(*, terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, color_system=None)
    with View(console, batches=2, partitions=2) as view:
        view.begin("key", "http://127.0.0.1:1/")
        view.on_batch_done(done(0))
        view.on_batch_done(done(1))
        view.begin("level", "http://127.0.0.1:1/")
        view.on_batch_done(done(0))
        assert len(view.batches) == 1
        view.on_state_changed("stopping")
    return out.getvalue()


def test_a_file_gets_a_line_a_batch() -> None:
    line = "40 words, 1.5 s, fullest partition 1.50 x the mean"
    assert shown(terminal=False).splitlines() == [
        "watch it in a browser: http://127.0.0.1:1/",
        "counting under key",
        f"  batch 1 of 2: {line}",
        f"  batch 2 of 2: {line}",
        "counting under level",
        f"  batch 1 of 2: {line}",
        "  stopping: the batch under way may finish",
    ]


def test_a_terminal_gets_bars_that_move() -> None:
    text = shown(terminal=True)
    assert text.count("\x1b[2K") > 4  # lines are replaced
    (hot, *_) = [line for line in text.splitlines() if line.startswith("p0 ")]
    (cold, *_) = [line for line in text.splitlines() if line.startswith("p1 ")]
    assert hot.count("█") == 3 * cold.count("█") == 48
    assert hot.rstrip().endswith("30 over")
    assert cold.rstrip().endswith("10")
    assert "batches ██  longest 1.5 s" in text


def test_the_table_has_both_and_says_what_is_wrong() -> None:
    batches = (done(0), done(1), done(2))
    out = io.StringIO()
    console = Console(file=out, width=80)
    console.print(
        make_summary([Outcome("key", True, 6, batches), Outcome("level", False, 5, batches)])
    )
    _, key, level = (line.split() for line in out.getvalue().splitlines())
    assert key == ["key", "1.50", "1.50", "1.50", "1.50", "27", "1.25", "6", "exact"]
    assert level[-2:] == ["5", "WRONG"]


def test_the_picture_is_drawn_or_the_reason_is_one_line(tmp_path: Path) -> None:
    outcomes = [Outcome(name, True, 0, (done(0), done(1))) for name in ("key", "level")]
    draw(tmp_path / "x.png", outcomes, range(1, 2))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ExternalError, match="demo: --png: /dev/full: No space left"):
        draw(Path("/dev/full"), outcomes, range(1, 2))


def test_what_the_medians_leave_out_is_said() -> None:
    batches = (done(0), done(1), done(2))
    both = [Outcome("key", True, 6, batches), Outcome("level", True, 6, batches)]
    assert describe_left_out(both) == (
        "batch s and the ratios are medians, slowest and worst the greatest of 2 batches. Left out"
        " of the times is the first batch of each (key 1.5 s, level 1.5 s), in which Spark opens"
        " its state and compiles its plan."
    )
    alone = [Outcome("key", True, 6, batches[:1])]
    assert describe_left_out(alone) == (
        "One batch each: its time includes the start of Spark's query."
    )


def test_how_long_it_takes_is_estimated_by_the_work_and_who_is_uneven() -> None:
    # A million words of 100 us over 8 partitions: 12.5 s if all of them are equally full.
    assert estimate_seconds(["level"], 100_000) == pytest.approx(25 + 7 + 1.1 * 12.5)
    assert estimate_seconds(["key", "level"], 100_000) == pytest.approx(84)
    assert [describe_seconds(taken) for taken in (84, 89.6, 90, 150)] == [
        "84 s",
        "90 s",
        "2 minutes",
        "2 minutes",
    ]
