"""What only Spark can judge: printed, and the job may run all the same."""

from pathlib import Path

import pytest

from tests.config.test_wrong_jobs import with_the_rest
from unskew.config.lint import check
from unskew.config.loader import load_job
from unskew.jobs.__main__ import main


@pytest.fixture(autouse=True)
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    decode = 'decode: {type: json, schema: "value STRING COLLATE NONSENSE"}\n'
    Path("job.yaml").write_text(with_the_rest(decode))


LINE = (
    "job.yaml:1:30: decode.schema: warning: character 22 of the Spark DDL schema:"
    ' Unskew does not know the collation "NONSENSE", Spark may; e.g. UTF8_LCASE or UNICODE_CI'
)


def test_a_warning_is_no_problem() -> None:
    assert check(["job.yaml"]) == ([], [LINE])
    assert load_job("job.yaml").name == "word_count"


def test_a_warning_is_printed_and_the_exit_code_stays_zero(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["lint", "job.yaml"]) == 0
    first, source, caret = capsys.readouterr().out.splitlines()
    assert first == LINE
    assert source[caret.index("^")] == '"'


CLUSTER = """
checkpoint: /data/words
spark:
  spark.master: spark://10.0.0.1:7077
  spark.executor.extraJavaOptions: -Dmy.password=${env:MY_PASSWORD}
"""


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ("", ["spark.executor.extraJavaOptions", "checkpoint", "spark.master"]),
        ("spark.master: local[2]", []),
        ("spark.master: k8s://https://10.0.0.1", ["spark.executor.extraJavaOptions"]),
        ("spark.authenticate: false", ["spark.executor.extraJavaOptions", "checkpoint"]),
        (
            "spark.authenticate.secret: ${env:MY_PASSWORD}",
            ["spark.executor.extraJavaOptions", "checkpoint"],
        ),
    ],
)
def test_what_a_cluster_opens_or_closes_is_a_warning(
    change: str, warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_PASSWORD", "hunter22")
    text = CLUSTER
    if change.startswith("spark.master"):
        text = text.replace("spark.master: spark://10.0.0.1:7077", change)
    elif change:
        text += f"  {change}\n"
    Path("job.yaml").write_text(with_the_rest(text))
    problems, lines = check(["job.yaml"])
    assert problems == []
    assert {name for name in warned if any(name in line for line in lines)} == set(warned)
    assert len(lines) == len(warned)
    assert not any("hunter22" in line for line in lines)
