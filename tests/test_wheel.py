"""The wheel, in an environment that knows nothing of the checkout."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from unskew.jobs.observe.page.page import DOCUMENT

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with our wheel; other packages are borrowed, not ours."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    borrowed = sysconfig.get_path("purelib")
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    # A path added like this brings its packages, but not its .pth files: our checkout stays out.
    Path(site, "borrowed.pth").write_text(borrowed + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "-q"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    return python.parent


def unskew(installed: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [installed / "unskew", *words], capture_output=True, text=True, cwd="/", check=False
    )


def test_help_lists_the_commands(installed: Path) -> None:
    done = unskew(installed, "--help")
    assert done.returncode == 0
    assert "lint" in done.stdout
    assert "explain" in done.stdout


def test_the_import_roots_are_the_wheels(installed: Path) -> None:
    code = "import unskew.jobs as j, unskew.config as c; print(j.__file__, c.__file__)"
    done = subprocess.run(
        [installed / "python", "-I", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert all(str(installed.parent) in path for path in done.stdout.split())


@pytest.mark.parametrize("job", ["word_count", "vwap", "hashtags"])
def test_shipped_jobs_lint_and_explain(installed: Path, job: str, tmp_path: Path) -> None:
    assert (unskew(installed, "lint", job).stdout, unskew(installed, "lint", job).stderr) == (
        "",
        "",
    )
    explained = unskew(installed, "explain", job)
    assert explained.returncode == 0
    copy = tmp_path / "copy.yaml"
    copy.write_text(explained.stdout)
    assert unskew(installed, "lint", str(copy)).returncode == 0


def test_jars_are_found_by_the_list_in_the_wheel(installed: Path) -> None:
    done = unskew(installed, "jars", "spark")
    assert len(done.stdout.splitlines()) == 5
    assert all(Path(line).exists() for line in done.stdout.splitlines())


def test_the_live_page_is_in_the_wheel(installed: Path) -> None:
    code = (
        "from unskew.jobs.observe.page.page import DOCUMENT; import sys; "
        "sys.stdout.buffer.write(DOCUMENT)"
    )
    done = subprocess.run(
        [installed / "python", "-I", "-c", code], capture_output=True, check=True, cwd="/"
    )
    assert done.stdout == DOCUMENT
