"""The sink `python`: which options its function gets, and what is said of wrong ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.jobs.sinks.base import Batch

CODE = """\
import json
from pathlib import Path


def write(results, batch_id, *, channel="all", **options):
    Path("written.json").write_text(json.dumps([batch_id, options]))
"""
JOB = """\
name: words
source: {type: files, path: in}
decode: {type: text}
operator: {type: word_count}
grouping: {type: level}
spark: {spark.sql.shuffle.minRows: 1.10}
sinks:
  - type: python
    file: alerts.py
    function: write
    options: {threshold: 5, share: 0.10, marks: [1, 2.5], on: true, code: "007", below: {least: 2}}
dead_letters: {type: files, path: bad}
checkpoint: checkpoint
"""
OPTIONS = {
    "threshold": 5,
    "share": 0.1,
    "marks": [1, 2.5],
    "on": True,
    "code": "007",
    "below": {"least": 2},
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("alerts.py").write_text(CODE)
    Path("job.yaml").write_text(JOB)


def written_by(overrides: dict[str, object]) -> Any:
    job = load_job("job.yaml", overrides)
    nothing: Any = None
    job.sinks[0].write(nothing, Batch(3, job, nothing))  # type: ignore[attr-defined]
    return json.loads(Path("written.json").read_text())


def test_the_function_gets_its_options_as_they_are_written() -> None:
    assert written_by({}) == [3, OPTIONS]


def test_the_command_line_brings_numbers_too() -> None:
    changed = {"sinks[0].options.threshold": 7, "sinks[0].options.share": 1e-3}
    assert written_by(changed) == [3, {**OPTIONS, "threshold": 7, "share": 0.001}]


def test_what_spark_takes_is_the_text_as_it_is_written() -> None:
    assert load_job("job.yaml").spark == {"spark.sql.shuffle.minRows": "1.10"}


@pytest.mark.parametrize(
    ("signature", "options", "lines"),
    [
        (
            "results, batch_id, url, *, channel='all', json=False",
            "{chanel: fraud, json: true}",
            [
                "11:5: sinks[0].options.url: missing; add it",
                '11:15: sinks[0].options.chanel: unknown key; did you mean "channel"?',
            ],
        ),
        (
            "results, batch_id, url, channel",
            "{}",
            [
                "11:5: sinks[0].options.channel: missing; add it",
                "11:5: sinks[0].options.url: missing; add it",
            ],
        ),
        (
            "results",
            "{url: a}",
            [
                (
                    "8:5: sinks[0]: function: write cannot be called with results, batch id and"
                    " options: too many positional arguments;"
                    " write def write(results, batch_id, url)"
                )
            ],
        ),
    ],
)
def test_every_wrong_option_is_named_where_it_stands(
    signature: str, options: str, lines: list[str]
) -> None:
    Path("alerts.py").write_text(f"def write({signature}):\n    pass\n")
    before, _, after = JOB.partition("    options: ")
    Path("job.yaml").write_text(f"{before}    options: {options}\n{after.partition(chr(10))[2]}")
    assert lint(["job.yaml"]) == [f"job.yaml:{line}" for line in lines]
