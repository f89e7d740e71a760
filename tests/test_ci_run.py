"""`.ci/run` repeats what failed and names it, with a `make` of the test's own."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = ("prometheus", "promtool", "prometheus-alertmanager", "amtool", "chromium")
# Called as `make TARGET [ARGS=...]`: the second run of a target has arguments.
MAKE = """\
#!/bin/sh
echo "make $*"
case "$1 ${{2:+again}}" in
"test ") mkdir -p .cache/pytest/v/cache
    printf '{{\n  "%s": true,\n  "%s": true\n}}' "{spark}" "tests/e.py::test_f[g@h]" >{kept}
    echo "FAILED tests/a.py::test_b[c d] - AssertionError"
    echo "ERROR tests/e.py::test_f - OSError"
    echo "=== 1 failed, 1 error, 3 passed in 2.00s ==="
    exit 2 ;;
"test again") echo "=== {second} in 1.00s ===" ; exit {code} ;;
*) echo "=== 4 passed in 3.00s ===" ;;
esac
"""
KEPT = Path(".cache/pytest/v/cache/lastfailed")
SPARK = "tests/a.py::test_b[c d]@spark"
REPEATED = [
    "needed a second run: tests/a.py::test_b[c d] - AssertionError",
    "needed a second run: tests/e.py::test_f - OSError",
]


def ci_run(root: Path, folder: Path, make: str) -> tuple[int, list[str]]:
    """The exit code and the output of `.ci/run`."""
    for name in TOOLS:
        (folder / name).symlink_to("/bin/true")
    (folder / "make").write_text(make)
    (folder / "make").chmod(0o755)
    # The script works in the folder above its own.
    (folder / ".ci").mkdir()
    script = shutil.copy(root / ".ci" / "run", folder / ".ci")
    done = subprocess.run(
        [script],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(("second", "code"), [("2 passed", 0), ("1 failed, 1 passed", 1)])
def test_the_last_lines_name_every_test_that_needed_a_second_run(
    root: Path, tmp_path: Path, second: str, code: int
) -> None:
    answer, lines = ci_run(
        root, tmp_path, MAKE.format(second=second, code=code, kept=KEPT, spark=SPARK)
    )

    assert answer == code
    kept = json.loads((tmp_path / KEPT).read_text())
    assert set(kept) == {SPARK, "tests/a.py::test_b[c d]", "tests/e.py::test_f[g@h]"}
    again = "make test ARGS=--last-failed --last-failed-no-failures=none"
    assert lines[-4:] == [again, f"=== {second} in 1.00s ===", *REPEATED]


def test_a_run_without_failures_repeats_nothing(root: Path, tmp_path: Path) -> None:
    answer, lines = ci_run(root, tmp_path, '#!/bin/sh\necho "make $*"\n')

    assert (answer, lines[0], lines[-1]) == (0, "make check", "make test")
    assert lines[-2].startswith("make test-slow ARGS=--minutes 18 --turn 2")


def test_a_run_that_broke_off_is_not_repeated(root: Path, tmp_path: Path) -> None:
    answer, lines = ci_run(root, tmp_path, '#!/bin/sh\necho "make $*"\n[ "$1" != test-slow ]\n')

    assert answer == 1
    assert lines[-1].startswith("make test-slow ARGS=--minutes")


@pytest.mark.parametrize("code", [0, 1])
def test_a_case_of_the_storm_that_failed_is_repeated_alone(
    root: Path, tmp_path: Path, code: int
) -> None:
    case = "--only flips --seed 12 --cases 1"
    make = f"""#!/bin/sh
echo "make $*"
case "$*" in
"storm ARGS={case}") exit {code} ;;
storm*) echo "repeat: python -m tests.storm {case}" ; exit 1 ;;
esac
"""
    answer, lines = ci_run(root, tmp_path, make)

    storms = [line for line in lines if line.startswith("make storm ")]
    assert (answer, len(storms), storms[-1]) == (code, 2, f"make storm ARGS={case}")
    assert lines[-1] == f'needed a second run: make storm ARGS="{case}"'
