"""Short forms of sections mean what they stand for, and are explained where they are wrong."""

from pathlib import Path

import jsonschema
import yaml

from unskew.config.json_schema import write_schema
from unskew.config.lint import lint
from unskew.config.loader import load_job

REST = """
name: short
source: {type: files, path: in}
decode: {type: json, schema: "user STRING, at TIMESTAMP"}
operator: {type: word_count, text: user}
sinks: [{type: console}]
dead_letters: {type: files, path: out}
checkpoint: checkpoint
spark: {spark.master: "local[2]"}
event_time: at
"""


def test_short_forms_are_their_long_ones(tmp_path: Path) -> None:
    short = "grouping: level\nwindow: 90 s\ntrigger: 5 s\n"
    (tmp_path / "short.yaml").write_text(short + REST)
    job = load_job(tmp_path / "short.yaml")
    assert job.grouping.type == "level"
    assert job.window.model_dump(mode="json") == {"type": "tumbling", "duration": "90 s"}
    assert job.trigger.model_dump(mode="json") == {"type": "interval", "interval": "5 s"}
    types = {"window": "none", "trigger": "available_now", "grouping": "none"}
    other = load_job(tmp_path / "short.yaml", types)
    assert [other.window.type, other.trigger.type, other.grouping.type] == [*types.values()]


def test_the_schema_takes_them(tmp_path: Path) -> None:
    import json

    short = yaml.safe_load("grouping: level\nwindow: 90 s\ntrigger: 5 s\n" + REST)
    jsonschema.validate(short, json.loads(write_schema()))


def test_a_wrong_short_form_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text("grouping: lvel\nwindow: 1 minite\ntrigger: 10 x\n" + REST)
    lines = [
        line.removeprefix(f"{tmp_path}/short.yaml:") for line in lint([f"{tmp_path}/short.yaml"])
    ]
    assert [line.split(";")[0] for line in lines] == [
        '1:11: grouping.type: unknown type (got "lvel")',
        '2:9: window.duration: a duration, such as "10 s" or "5 minutes" (got "1 minite")',
        '3:10: trigger.interval: a duration, such as "10 s" or "5 minutes" (got "10 x")',
    ]
