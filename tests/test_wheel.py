"""The wheel, in an environment that knows nothing of the checkout but has modules of a user's own.

They are called `config`, `jobs` and `grouping`, as the folders of the checkout are.
"""

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import unskew as checkout
from unskew.jobs.observe.page.page import DOCUMENT

pytestmark = pytest.mark.e2e


# In the environment, beside the wheel.
USERS_PACKAGES = {
    "config.py": "LEAST = 3\n",
    "jobs/__init__.py": "",
    "jobs/lengths.py": "length = len\n",
    "grouping/__init__.py": "WORDS = ('many', 'few')\n",
    "user_longest.py": """
from unskew import OperatorOptions, RowOperator

from config import LEAST
from grouping import WORDS
from jobs.lengths import length


class LongestOptions(OperatorOptions):
    least: int = LEAST


class Longest(RowOperator):
    Options = LongestOptions
    key = "user"
    inputs = {"text": "text"}
    partial_columns = {"longest": "INT", "texts": "BIGINT"}
    merge = {"longest": "max(longest)", "texts": "sum(texts)"}
    final = {"longest": "longest", "texts": f"if(texts > 1, '{WORDS[0]}', '{WORDS[1]}')"}

    def start(self):
        return {"longest": self.options.least, "texts": 0}

    def add(self, state, row):
        state["longest"] = max(state["longest"], length(row.text))
        state["texts"] += 1
        return state

    def result(self, state):
        return state
""",
    "user_longest-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: user_longest\nVersion: 1\n",
    "user_longest-1.dist-info/entry_points.txt": (
        "[unskew.operators]\nlongest = user_longest:Longest\n"
    ),
}
# Where the job is started, which Python looks through first under `python -m`.
USERS_FOLDER = {
    "config.py": "LEAST = 5\n",
    "jobs/__init__.py": "",
    "jobs/lengths.py": "length = len\n",
    "grouping/__init__.py": "WORDS = ('several', 'one')\n",
    "job.yaml": """
name: longest
source: {type: files, path: in}
decode: {type: json, schema: "user STRING, text STRING"}
operator: {type: longest}
grouping: {type: shuffle}
partitions: 2
merge: {partitions: 1}
sinks: [{type: console}]
dead_letters: {type: files, path: dead_letters}
checkpoint: checkpoint
metrics: {port: auto}
spark: {spark.master: "local[2]", spark.driver.memory: 1g}
""",
}
LINES = [("a", "four"), ("a", "eleven long"), ("b", "-")]


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write texts by their paths in a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def build(target: str, source: Path, folder: Path) -> Path:
    """The wheel or the sdist of what is in `source`, in a folder of its own."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our wheel, built from the checkout."""
    return build("wheel", root, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The `bin` of an environment with our wheel; other packages are borrowed, not ours."""
    folder = wheel.parent / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    borrowed = sysconfig.get_path("purelib")
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    # A path added like this brings its packages, but not its .pth files: our checkout stays out.
    Path(site, "borrowed.pth").write_text(borrowed + "\n")
    write_files(Path(site), USERS_PACKAGES)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "-q"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    return python.parent


def unskew(installed: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [installed / "unskew", *words], capture_output=True, text=True, cwd="/", check=False
    )


def test_it_brings_one_import_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    metadata = f"unskew-{checkout.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"unskew", metadata}


@pytest.mark.slow
@pytest.mark.every_run
def test_the_wheel_of_the_source_archive_is_the_same(
    root: Path, wheel: Path, tmp_path: Path
) -> None:
    with tarfile.open(build("sdist", root, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    other = build("wheel", source, tmp_path / "wheel")

    assert contents(other) == contents(wheel)


def contents(wheel: Path) -> dict[str, int]:
    """The files of a wheel, each with its checksum."""
    return {info.filename: info.CRC for info in zipfile.ZipFile(wheel).infolist()}


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


def test_shipped_jobs_lint_and_explain(installed: Path, tmp_path: Path) -> None:
    jobs = ("word_count", "vwap", "hashtags")
    linted = unskew(installed, "lint", *jobs)
    assert (linted.returncode, linted.stdout) == (0, "")
    assert [
        line.partition(": job ")[2].partition(":")[0] for line in linted.stderr.splitlines()
    ] == [*("hashtags", "vwap", "word_count")]
    explained = unskew(installed, "explain", "hashtags")
    assert explained.returncode == 0
    (tmp_path / "copy.yaml").write_text(explained.stdout)
    assert unskew(installed, "lint", str(tmp_path / "copy.yaml")).returncode == 0


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


@pytest.mark.slow
@pytest.mark.every_run
@pytest.mark.spark
@pytest.mark.parametrize(
    ("command", "least", "words"),
    [
        (["unskew"], 3, ("many", "few")),
        (["python", "-m", "unskew"], 5, ("several", "one")),
    ],
    ids=["command", "module"],
)
def test_a_job_runs_beside_a_users_own_modules_of_our_folders_names(
    installed: Path, tmp_path: Path, command: list[str], least: int, words: tuple[str, str]
) -> None:
    write_files(tmp_path, USERS_FOLDER)
    lines = [json.dumps({"user": user, "text": text}) for user, text in LINES]
    write_files(tmp_path, {"in/1.json": "\n".join(lines)})
    program, *rest = command

    done = subprocess.run(
        [installed / program, *rest, "run", "job.yaml", "--available-now"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    totals = re.findall(r"^\|(\w+) *\| *(\d+) *\| *(\w+) *\|$", done.stdout, re.MULTILINE)
    assert sorted(totals) == [("a", "11", words[0]), ("b", str(least), words[1])]
