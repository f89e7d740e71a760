"""What reads jobs loads every operator and sink, and nothing that runs them."""

import subprocess
import sys

HEAVY = ["confluent_kafka", "datasketches", "fastavro", "numba", "psycopg", "py4j", "pyarrow"]
HEAVY += ["pyspark", "sqlglot"]
COMMAND = "from unskew.jobs.__main__ import main; assert main({words!r}) == 0"
LOADED = "from unskew.config.specs import SECTIONS; [kinds.load(name) for kinds in \
SECTIONS.values() for name in kinds.list_shipped_names()]"
FACADE = "from unskew import DeadLetters, Operator, OperatorOptions, RowOperator, Sink, load_job; \
load_job('hashtags')"
REPORT = "import sys; print('heavy:', sorted(set({heavy}) & set(sys.modules)))"


READING = {
    "lint": COMMAND.format(words=["lint", "events_to_delta", "hashtags", "vwap", "word_count"]),
    "explain": COMMAND.format(words=["explain", "hashtags"]),
    "schema": COMMAND.format(words=["schema", "--check"]),
    "every class": LOADED,
    "facade": FACADE,
}


def heavy_after(*steps: str) -> list[str]:
    """What of the heavy packages is loaded after each step of a fresh interpreter."""
    report = REPORT.format(heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(f"{step}\n{report}" for step in steps)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if line.startswith("heavy: ")]


def test_reading_jobs_imports_nothing_that_runs_them() -> None:
    loaded = dict(zip(READING, heavy_after(*READING.values()), strict=True))
    assert loaded == dict.fromkeys(READING, "heavy: []")


def test_a_heavy_package_is_seen() -> None:
    assert heavy_after("import pyarrow") == ["heavy: ['pyarrow']"]


def test_workers_start_with_what_operators_import_when_they_work() -> None:
    (report,) = heavy_after("import unskew.jobs.engine.python_daemon")
    assert all(name in report for name in ("datasketches", "pyarrow", "pyspark"))
