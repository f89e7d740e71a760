"""An operator in a file beside the job: executors get it from Spark; an edit of it is said."""

import json
from pathlib import Path

import pytest

from tests.support.running.cluster import cluster
from tests.support.running.job_process import finished
from unskew.jobs.commands.project.init import TEMPLATE

CODE = (TEMPLATE / "scoring.py.txt").read_text()
KEEP = """
import json
from pathlib import Path


def write(results, batch_id, folder):
    rows = [row.asDict() for row in results.collect()]
    Path(folder, f"{batch_id}.json").write_text(json.dumps(rows, default=str))
"""
RECORDS = '{"customer": "anna", "amount": 12.5}\n{"customer": "bert", "amount": 30}\n'


def make_job(folder: Path, master: str) -> Path:
    job = {
        "name": "scores",
        "source": {"type": "files", "path": str(folder / "in")},
        "decode": {"type": "json", "schema": "customer STRING, amount DECIMAL(12, 2)"},
        "operator": {"type": "python", "file": "scoring.py", "class": "Scoring"},
        "grouping": "level",
        "partitions": 4,
        "window": "none",
        "merge": {"partitions": 1, "output": "update"},
        "trigger": "available_now",
        "sinks": [
            {
                "type": "python",
                "file": "keep.py",
                "function": "write",
                "options": {"folder": str(folder)},
            }
        ],
        "dead_letters": {"type": "files", "path": str(folder / "dead")},
        "checkpoint": str(folder / "checkpoint"),
        "spark": {"spark.master": master, "spark.executor.memory": "512m"},
    }
    (folder / "job.yaml").write_text(json.dumps(job))
    return folder / "job.yaml"


def read_scores(folder: Path, batch: int) -> dict[str, int]:
    rows = json.loads((folder / f"{batch}.json").read_text())
    return {row["key"]: row["score"] for row in rows}


@pytest.mark.spark
@pytest.mark.slow
def test_executors_work_with_the_file_as_it_is_at_each_start(tmp_path: Path) -> None:
    (tmp_path / "scoring.py").write_text(CODE)
    (tmp_path / "keep.py").write_text(KEEP)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text(RECORDS)
    with cluster(tmp_path / "cluster") as spark:
        job = str(make_job(tmp_path, spark.url))
        code, _, log = finished(["run", job], "--log", "json")
        assert code == 0, log
        assert read_scores(tmp_path, 0) == {"anna": 1250, "bert": 3000}
        assert "operator_changed" not in log

        (tmp_path / "scoring.py").write_text(CODE.replace("state[0] += row", "state[0] += 2 * row"))
        (tmp_path / "in" / "1.json").write_text(RECORDS)
        code, _, log = finished(["run", job], "--log", "json")
        assert code == 0, log
        assert read_scores(tmp_path, 1) == {"anna": 3 * 1250, "bert": 3 * 3000}
    events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    (changed,) = [event for event in events if event["event"] == "operator_changed"]
    assert changed["what"].startswith("operator.file: has changed since the last run;")
