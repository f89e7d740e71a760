"""`unskew lint --against`: which edits a checkpoint takes, before anything is started."""

import io
from pathlib import Path

import pytest

from unskew.config.loader import load_job
from unskew.jobs.__main__ import main
from unskew.jobs.checkpoint.identity import write_identity


def edited(folder: Path, *changes: tuple[str, str]) -> str:
    """The shipped job's file with other texts in it."""
    text = (Path(__file__).parents[3] / "config" / "jobs" / "word_count.yaml").read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    file = folder / "job.yaml"
    file.write_text(text)
    return str(file)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    folder = tmp_path / "checkpoint"
    write_identity(load_job("word_count", {"checkpoint": str(folder)}))
    (folder / "offsets").mkdir()
    return str(folder)


def lint(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    code = main(["lint", *words])
    return code, capsys.readouterr().out.splitlines()


def test_edits_that_the_checkpoint_does_not_take_are_problems(
    tmp_path: Path, checkpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = edited(tmp_path, ("name: word_count", "name: other"))
    code, (line,) = lint(capsys, file, "--against", checkpoint)
    assert code == 2
    assert line.startswith(f'{file}: checkpoint: {checkpoint}: belongs to the job "word_count"')


def test_edits_of_the_routing_are_said_and_taken(
    tmp_path: Path, checkpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = lint(capsys, edited(tmp_path), "--against", checkpoint)
    assert (code, lines) == (0, [f"checkpoint: {checkpoint}: the job continues from there"])
    file = edited(tmp_path, ("type: level", "type: fish"), ("partitions: 16", "partitions: 9"))
    code, lines = lint(capsys, file, "--against", checkpoint)
    assert code == 0
    means = "the sources lose what they learnt about keys; totals continue"
    assert lines[:2] == [
        f"grouping.type: was level, is fish; {means}",
        f"partitions: was 16, is 9; {means}",
    ]


def test_a_checkpoint_that_is_not_there_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (line,) = lint(capsys, edited(tmp_path), "--against", f"{tmp_path}/none")
    assert code == 0
    assert line.endswith("no query was started there; the job is a new one")
    assert main(["lint", "word_count", "vwap", "--against", f"{tmp_path}/none"]) == 2
    assert "compares one FILE with a checkpoint" in capsys.readouterr().err


def test_standard_input_and_a_folder_of_one_file_are_compared_too(
    tmp_path: Path,
    checkpoint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "jobs").mkdir()
    text = Path(edited(tmp_path / "jobs")).read_bytes()
    goes_on = f"checkpoint: {checkpoint}: the job continues from there"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert lint(capsys, "-", "--against", checkpoint) == (0, [goes_on])
    assert lint(capsys, f"{tmp_path}/jobs", "--against", checkpoint) == (0, [goes_on])

    (tmp_path / "jobs" / "other.yaml").write_bytes(text)
    assert main(["lint", f"{tmp_path}/jobs", "--against", checkpoint]) == 2
    assert "compares one FILE with a checkpoint; 2 of them are in" in capsys.readouterr().err
