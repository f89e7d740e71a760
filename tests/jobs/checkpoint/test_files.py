"""A checkpoint by URI: Spark and the journal mean the same folder, or one line says why not."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import records
from tests.support.running.in_process import Ran, write_lines
from unskew.jobs.__main__ import main


@pytest.mark.spark
@pytest.mark.slow
def test_spark_and_the_journal_read_a_file_uri_alike(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", "1.json", records(1, 20))
    home = tmp_path / "with blank 100%25"
    operator = {"type": "word_count", "text": "text"}
    Ran(spark, tmp_path, "uri", operator=operator, checkpoint=f"file://{home}")

    assert {path.name for path in home.iterdir()} >= {"commits", "offsets", "unskew"}
    assert (home / "unskew" / "000000000000" / "partition-00000.report").exists()
    assert not list(tmp_path.glob("with blank 100%"))


@pytest.mark.parametrize(
    ("checkpoint", "why"),
    [
        (
            "wasbs://c@a.net/x",
            "used: wasbs: is not a scheme that can be opened; use a path, file:,",
        ),
        ("file://host/x", "written: file: URIs name no host (got file://host/x"),
    ],
)
def test_a_place_that_cannot_be_opened_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], checkpoint: str, why: str
) -> None:
    (tmp_path / "in").mkdir()
    job = tmp_path / "job.yaml"
    job.write_text(
        f"name: placed\nsource: {{type: files, path: {tmp_path}/in}}\ndecode: {{type: text}}\n"
        f"operator: {{type: word_count}}\ngrouping: {{type: level}}\ncheckpoint: {checkpoint}\n"
        "sinks: [{type: console}]\nmerge: {output: update}\nspark: {spark.master: 'local[1]'}\n"
        f"dead_letters: {{type: files, path: {tmp_path}/dead}}\n"
    )
    assert main(["run", str(job), "--log", "console"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"checkpoint: {checkpoint}: cannot be {why}")
