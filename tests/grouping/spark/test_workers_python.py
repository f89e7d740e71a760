"""A program that calls `route` from a virtual environment that is not activated."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

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
