"""Which tests a run begins with `--turn` and `--minutes`."""

import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest


@pytest.mark.every_run
def test_always() -> None:
    pass


def test_by_turn() -> None:
    pass
"""


def run_pytest(root: Path, *words: str) -> list[str]:
    """What a pytest of its own prints."""
    command = [sys.executable, "-m", "pytest", "-q", *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_what_every_run_has_is_begun_first(root: Path) -> None:
    files = ["tests/test_facade.py", "tests/test_bootstrap.py", "tests/docs/test_architecture.py"]
    turn = "a"  # by which the files' own order has tests/test_facade.py first

    *collected, _, _ = run_pytest(root, "-m", "slow", "--collect-only", "--turn", turn, *files)

    first = {name.partition("::")[0] for name in collected[:2]}
    assert first == {"tests/test_bootstrap.py", "tests/docs/test_architecture.py"}
    assert collected[2:]


def test_what_every_run_has_is_begun_when_time_is_over(root: Path, tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(TESTS)
    words = [
        "-c",
        "/dev/null",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.conftest",
        "--minutes",
        "0",
        str(tmp_path),
    ]

    assert "1 passed, 1 skipped" in run_pytest(root, *words)[-1]
