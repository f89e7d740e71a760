"""`import unskew`: what a user may import, how it is typed, and when it is loaded."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import unskew
from unskew import load_job, run_job
from unskew.config.errors import UsageError

PUBLIC = {
    "Batch",
    "DeadLetters",
    "Grouping",
    "GroupingParams",
    "Operator",
    "OperatorOptions",
    "RowOperator",
    "Sink",
    "__version__",
    "load_job",
    "route",
    "run_job",
}
USERS_FILE = """\
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pyspark.sql import DataFrame

from unskew import (
    Batch,
    Grouping,
    GroupingParams,
    Operator,
    OperatorOptions,
    RowOperator,
    Sink,
    __version__,
    load_job,
    route,
    run_job,
)


class LongestOptions(OperatorOptions):
    field: str = "text"


class Longest(RowOperator):
    Options = LongestOptions

    @property
    def key(self) -> str:
        return "user"

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {"longest": "INT"}

    @property
    def merge(self) -> Mapping[str, str]:
        return {"longest": "max(longest)"}

    def start(self) -> int:
        return 0

    def add(self, state: int, row: Any) -> int:
        return max(state, len(row.text))

    def result(self, state: int) -> dict[str, int]:
        return {"longest": state}


class WebhookSink(Sink):
    url: str

    def write(self, results: DataFrame, batch: Batch) -> None:
        print(self.url, batch.id, batch.job.name, results.count())


class Params(GroupingParams):
    type: Literal["mine"] = "mine"


def params_of(grouping: type[Grouping]) -> type[GroupingParams]:
    return grouping.Params


def routed(events: DataFrame, operator: Operator) -> DataFrame:
    return route(events, key=operator.key, grouping="level", partitions=16)


def main() -> None:
    print(__version__.split("."))
    run_job(load_job("job.yaml", {"partitions": 8}))
    run_job("word_count")
"""


def modules_after(*steps: str) -> list[set[str]]:
    """The first names of all modules that are loaded after each step of a fresh interpreter."""
    report = "import json, sys; print(json.dumps([m.partition('.')[0] for m in sys.modules]))"
    code = "\n".join(f"{step}\n{report}" for step in steps)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


HEAVY = {"numba", "numpy", "pandas", "py4j", "pyarrow", "pydantic", "pyspark"}


def test_the_public_names_are_these_and_no_others() -> None:
    assert set(unskew.__all__) == PUBLIC
    assert set(dir(unskew)) >= PUBLIC
    assert {name: getattr(unskew, name).__name__ for name in PUBLIC - {"__version__"}} == {
        name: name for name in PUBLIC - {"__version__"}
    }
    with pytest.raises(AttributeError, match="module 'unskew' has no attribute 'rout'"):
        unskew.rout  # type: ignore[attr-defined]  # noqa: B018 - misspelt on purpose


def test_importing_it_loads_nothing_and_a_name_loads_what_it_needs() -> None:
    imported, looked_at, options, route = modules_after(
        "import unskew",
        "unskew.__version__; dir(unskew)",
        "from unskew import OperatorOptions",
        "from unskew import route",
    )
    assert imported & HEAVY == looked_at & HEAVY == set()
    assert options & {"pyspark", "numba"} == set()
    assert "pyspark" in route


def test_the_version_has_one_source() -> None:
    assert version("unskew") == unskew.__version__


@pytest.mark.slow
def test_a_users_program_passes_the_strictest_type_check(root: Path, tmp_path: Path) -> None:
    cache = ["--cache-dir", str(root / ".cache" / "mypy-of-a-user")]
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    (tmp_path / "program.py").write_text(USERS_FILE)
    (tmp_path / "misspelt.py").write_text("from unskew import rout\n")
    (tmp_path / "wrong.py").write_text("from unskew import run_job\n\nrun_job(7)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "mypy.ini", *cache, "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    misspelt, wrong = sorted(line for line in done.stdout.splitlines() if ": error: " in line)
    assert misspelt.startswith('misspelt.py:1: error: Module "unskew" has no attribute "rout"')
    assert 'wrong.py:3: error: Argument 1 to "run_job" has incompatible type "int"' in wrong


@pytest.mark.spark
def test_run_job_leaves_another_session_of_the_process_alone(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="stop it before"):
        run_job(load_job("word_count"))
    assert spark.range(3).count() == 3
