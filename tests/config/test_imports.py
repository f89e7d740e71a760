"""What reads jobs loads every operator and sink, and nothing that runs them."""

import subprocess
import sys

import pytest

HEAVY = ["confluent_kafka", "datasketches", "fastavro", "numba", "psycopg", "py4j", "pyarrow"]
HEAVY += ["pyspark", "sqlglot"]
COMMAND = "from unskew.jobs.__main__ import main; assert main({words!r}) == 0"
LOADED = "from unskew.config.specs import SECTIONS; [kinds.load(name) for kinds in \
SECTIONS.values() for name in kinds.shipped_names()]"
FACADE = "from unskew import DeadLetters, Operator, OperatorOptions, RowOperator, Sink, load_job; \
load_job('hashtags')"
REPORT = "import sys; print('heavy:', sorted(set({heavy}) & set(sys.modules)))"


def heavy_after(code: str) -> str:
    """What of the heavy packages is loaded once a fresh interpreter has run `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{REPORT.format(heavy=HEAVY)}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "code",
    [
        COMMAND.format(words=["lint", "events_to_delta", "hashtags", "vwap", "word_count"]),
        COMMAND.format(words=["explain", "hashtags"]),
        COMMAND.format(words=["schema", "--check"]),
        LOADED,
        FACADE,
    ],
    ids=["lint", "explain", "schema", "every class", "facade"],
)
def test_reading_jobs_imports_nothing_that_runs_them(code: str) -> None:
    assert heavy_after(code) == "heavy: []"


def test_a_heavy_package_is_seen() -> None:
    assert heavy_after("import pyarrow") == "heavy: ['pyarrow']"


def test_workers_start_with_what_operators_import_when_they_work() -> None:
    report = heavy_after("import unskew.jobs.engine.python_daemon")
    assert all(name in report for name in ("datasketches", "pyarrow", "pyspark"))
