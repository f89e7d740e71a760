"""A program that calls `route` from a virtual environment that is not activated."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from unskew.grouping.spark import workers_python
from unskew.jobs.local.java import find_java_home

pytestmark = pytest.mark.spark

PROGRAM = """
import os, sys
from pyspark.sql import SparkSession
from unskew.grouping.spark.route import route

def rows_routed():
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "OFF").getOrCreate()
    try:
        return route(spark.range(6), key="id", grouping="key", partitions=2).count()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        spark.stop()

print(rows_routed())
os.environ["PYSPARK_PYTHON"] = sys.argv[1]
print(rows_routed())
"""


@pytest.mark.slow
@pytest.mark.every_run
def test_workers_run_the_programs_own_python_or_the_error_says_how(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python3"
    environment = {
        **os.environ,
        "PATH": f"{bare.parent}:{os.environ['PATH']}",
        "JAVA_HOME": str(find_java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_PYTHON", None)
    environment.pop("VIRTUAL_ENV", None)
    command = [sys.executable, "-c", PROGRAM, str(bare)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.stdout.splitlines()[0] == "6"
    error = done.stdout.splitlines()[1]
    assert error.startswith(
        f"GroupingError: Spark's workers run {bare}, which cannot route: No module named"
    )
    assert error.endswith(
        "set PYSPARK_PYTHON to a Python that has this package on every machine, before Spark"
        f" starts (this program's own is {sys.executable})"
    )


PARENTS = """
import os, sys
import pyarrow as pa
from pyspark.sql import SparkSession
from unskew.grouping.spark.route import route

def tell(batches):
    for _ in batches:
        with open(f"/proc/{os.getppid()}/cmdline") as words:
            yield pa.RecordBatch.from_pydict({"daemon": [words.read().split(chr(0))[2]]})

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for name in sys.argv[1:]:
    builder = builder.config("spark.python.daemon.module", name)
spark = builder.config("spark.log.level", "OFF").getOrCreate()
routed = route(spark.range(6), key="id", grouping="key", partitions=1)
print(routed.mapInArrow(tell, "daemon STRING").first().daemon)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "used"),
    [([], "unskew.grouping.spark.worker_daemon"), (["pyspark.daemon"], "pyspark.daemon")],
)
def test_workers_are_forked_with_what_routing_needs_unless_the_program_says_otherwise(
    own: list[str], used: str
) -> None:
    environment = {**os.environ, "JAVA_HOME": str(find_java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_PYTHON", None)
    command = [sys.executable, "-c", PARENTS, *own]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.split() == [used]


def test_a_package_that_a_new_python_would_not_find_is_not_forked_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert workers_python._finds_package.__wrapped__()
    monkeypatch.setattr(sys.modules["unskew"], "__file__", "/elsewhere/unskew/__init__.py")
    assert not workers_python._finds_package.__wrapped__()
