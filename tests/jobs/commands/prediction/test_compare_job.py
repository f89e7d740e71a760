"""`unskew compare JOB`: its own operator is measured, and only what the job may have is named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

OPERATOR = """
import time
from unskew import OperatorOptions, RowOperator

class Met(RowOperator):
    \"\"\"Counts, and needs two milliseconds for each key that it meets.\"\"\"

    Options = OperatorOptions
    key = "value"
    partial_columns = {"met": "BIGINT"}
    merge = {"met": "sum(met)"}

    def start(self):
        time.sleep(2e-3)
        return {"met": 0}

    def add(self, state, row):
        return {"met": state["met"] + 1}

    def result(self, state):
        return state

class Whole(Met):
    splits = False
"""


def compare(root: Path, folder: Path, name: str, grouping: str) -> dict[str, object]:
    """The answer to a job of eight keys, each with as many of the 4,000 records as the others."""
    (folder / "met.py").write_text(OPERATOR)
    (folder / "in").mkdir()
    (folder / "in" / "0.txt").write_text("".join(f"k{number % 8}\n" for number in range(4000)))
    job = {
        "name": "asked",
        "source": {"type": "files", "path": str(folder / "in")},
        "decode": {"type": "text"},
        "operator": {"type": "python", "file": "met.py", "class": name},
        "grouping": {"type": grouping},
        "partitions": 8,
        "sinks": [{"type": "console"}],
        "dead_letters": {"type": "files", "path": str(folder / "rejected")},
        "checkpoint": str(folder / "checkpoint"),
    }
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    words = ["compare", str(file), "--slots", "8", "--json"]
    program = [sys.executable, "-m", "unskew", *words]
    done = subprocess.run(program, cwd=root, capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_whose_keys_must_stay_whole_is_told_of_no_way_that_splits_them(
    root: Path, tmp_path: Path
) -> None:
    answer = compare(root, tmp_path, "Whole", "key")

    ways = {row["way"] for row in answer["predictions"]}
    assert ways == {"none", "key", "whole"}
    assert answer["take"] in ways
    assert any(note.startswith("Its operator forbids") for note in answer["notes"])


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_under_auto_is_compared_with_what_auto_takes(root: Path, tmp_path: Path) -> None:
    answer = compare(root, tmp_path, "Met", "auto")

    assert answer["today"] == "auto"
    assert {"none", "local", "level", "fish"} <= {row["way"] for row in answer["predictions"]}
    assert "today's level" not in answer["advice"]
