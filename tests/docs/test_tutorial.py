"""docs/tutorial.md, typed in from top to bottom by a user with an empty folder."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jobs.java import java_home
from tests.docs.blocks import blocks


def write_files(page: Path, folder: Path) -> dict[str, str]:
    """The files that the page names, with the package installed as `pip install .` would."""
    files = {block.name: block.text for block in blocks(page) if block.name}
    for name, text in files.items():
        (folder / name).write_text(text)
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {what}" for name, what in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return files


def run(folder: Path, root: Path, *command: str) -> str:
    """A command that a user types in the folder; its output."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{root}", "JAVA_HOME": str(java_home())},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.slow
def test_the_tutorial_from_top_to_bottom(root: Path, tmp_path: Path) -> None:
    page = root / "docs" / "tutorial.md"
    typed = [block.text for block in blocks(page, "python") if not block.name]
    told = "\nprint(json.dumps([skewed, level, after]))\n"
    (tmp_path / "typed.py").write_text("\n".join(typed) + told)
    skewed, level, after = json.loads(run(tmp_path, root, "typed.py").splitlines()[-1])
    mean = 80_000 / 8
    assert 3.5 < max(skewed) / mean < 4.0
    assert max(level) <= mean + 4  # each of the few sources rounds on its own
    assert sum(clicks for _, clicks in after.values()) == 80_000
    files = write_files(page, tmp_path)
    assert set(files) == {"scoring.py", "pyproject.toml", "scoring.yaml"}
    outputs = {}
    for line in "".join(block.text for block in blocks(page, "sh")).splitlines():
        program, command, *words = line.split()
        assert program == "unskew"
        outputs[command] = run(tmp_path, root, "-m", "jobs", command, *words)
    assert "Use " in outputs["compare"]
    assert outputs["lint"] == ""
    assert totals_of("bot", outputs["run"]) == [str(number) for number in after["bot"]]
    words = ("-m", "jobs", "inspect", "checkpoints/scoring", "--json")
    shown = json.loads(run(tmp_path, root, *words))
    assert len(shown["batches"]) == 4
    assert all(batch["max_over_mean"] <= 1.001 for batch in shown["batches"])


def totals_of(user: str, output: str) -> list[str]:
    """The last row of a user that the console showed."""
    rows = [[cell.strip() for cell in line.split("|")] for line in output.splitlines()]
    return next(row[2:4] for row in reversed(rows) if len(row) > 3 and row[1] == user)
