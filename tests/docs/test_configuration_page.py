"""docs/configuration.md: every field is in it, and every example in it is clean."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.reference.configuration import EXAMPLES, PAGE, Entry, Section, page, sections
from unskew.config.lint import lint
from unskew.config.models.grouping import GROUPING_MODELS
from unskew.jobs.commands.project.init import TEMPLATE

BASE = """
name: example
source: {type: kafka, bootstrap_servers: "127.0.0.1:9092", subscribe: [example]}
decode:
  type: json
  schema: symbol STRING, price DECIMAL(18,4), volume BIGINT, user STRING, hashtags ARRAY<STRING>,
    user_id STRING, amount DECIMAL(18,4), latency_ms BIGINT, page STRING, country STRING,
    customer STRING, ts TIMESTAMP
operator: {type: paced}
grouping: {type: level}
sinks: [{type: console}]
dead_letters: {type: files, path: /data/example_dead_letters}
checkpoint: /data/example_checkpoint
"""
WINDOWED = {"window": {"type": "tumbling", "duration": "1 minute"}, "lateness": "10 s"}
APPEND = {**WINDOWED, "merge": {"output": "append"}}
EVENTS = {"type": "json", "schema": "country STRING, amount INT, ts TIMESTAMP"}
TABLE = {"type": "table", "format": "delta", "path": "/data/example_table"}
# What an example needs beside it in the whole job.
NEEDS = {
    "grouping.level.target_file_bytes": {
        "decode": EVENTS,
        "operator": {"type": "rows"},
        "sinks": [TABLE],
    },
    "lateness": WINDOWED,
    "merge.output": APPEND,
    "operator.hashtags": APPEND,
    "operator.rows": {"decode": EVENTS, "sinks": [TABLE]},
    "sinks.files": APPEND,
    "sinks.table": {"decode": EVENTS, "operator": {"type": "rows"}},
    "sinks.table.columns": {"decode": {"type": "text"}, "operator": {"type": "word_count"}},
    "sinks.table.file_cost_bytes": {"grouping": {"type": "level", "balance": "bytes"}},
    "window.tumbling": WINDOWED,
    "window.sliding": WINDOWED,
}
# What it needs in its own section.
BESIDE = {
    "grouping.level.target_file_bytes": {"balance": "bytes"},
    "grouping.posg.synchronise_records": {"memory": "stream"},
}
TEXT = {"decode": {"type": "text"}}
RESULT = {"name": "by_user", "key": "user", "columns": {"events": "count(*)"}}
RESULTS = {
    "decode": {"type": "json", "schema": "user STRING"},
    "operator": {"type": "results", "results": [RESULT]},
}
EACH = [(section, entry) for section in sections() for entry in section.entries]
NAMES = [entry.path for _, entry in EACH]
OPENS = """
    def open(self, key):
        return key
"""
ALERTS = """
def write(results, batch_id, channel="fraud"):
    pass
"""
AVRO = '{"type": "record", "name": "t", "fields": [{"name": "symbol", "type": "string"}]}'


def job_with(section: Section, entry: Entry) -> dict[str, Any]:
    """A whole job in which the section has this field as its example writes it."""
    job = yaml.safe_load(BASE)
    for prefix, more in NEEDS.items():
        if f"{entry.path}.".startswith(f"{prefix}."):
            job |= more
    if section.path.startswith("operator.word_count"):
        job |= TEXT
    if not section.key:
        return job | ({entry.name: entry.example} if entry.example is not None else {})
    where, _, inner = section.key.partition(".")
    written = section.written(entry) | BESIDE.get(entry.path, {})
    if (
        where == "source"
        and section.path == "source.kafka"
        and not ({"pattern", "assign"} & written.keys())
    ):
        written |= {"subscribe": ["lines"]}
    if section.path == "operator.python" and "module" not in written:
        written |= {"file": "scoring.py"}
    if section.path == "sinks.python" and "module" not in written:
        written |= {"file": "alerts.py"}
    if inner:
        written = {inner: written}
    if where == "sinks":
        return job | (RESULTS if entry.name == "result" else {}) | {"sinks": [written]}
    if section.path == "operator.results.results":
        written = {"type": "results", "results": [section.written(entry)]}
    if section.path.startswith("operator.results"):
        job |= {"sinks": [{"type": "console", "result": "by_user"}]}
    before = job.get(where, {})
    keep = where in {"merge", "metrics"} or (
        before.get("type") == written.get("type") and where == "window"
    )
    return job | {where: {**before, **written} if keep else written}


def write_module(folder: Path, name: str, code: str) -> None:
    """A module beside the job, and the same in a package."""
    (folder / "company").mkdir()
    for parent in (folder, folder / "company"):
        (parent / f"{name}.py").write_text(code)


@pytest.mark.parametrize(("section", "entry"), EACH, ids=NAMES)
def test_every_example_is_clean_in_a_whole_job(
    section: Section, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    monkeypatch.setenv("METRICS_PASSWORD", "s3cret")
    if section.path == "operator.python":
        write_module(tmp_path, "scoring", (TEMPLATE / "scoring.py.txt").read_text() + OPENS)
        monkeypatch.syspath_prepend(tmp_path)
    if section.path == "sinks.python":
        write_module(tmp_path, "alerts", ALERTS)
        monkeypatch.syspath_prepend(tmp_path)
    if section.path == "decode.avro":
        (tmp_path / "trade.avsc").write_text(AVRO)
    if entry.example is None:
        # It is a section itself, or it is left out when nothing is to be said: no other way.
        assert "$ref" in str(entry.schema) or entry.name == "options", entry.path
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job_with(section, entry)))
    assert lint([str(file)]) == []


def test_a_wrong_example_is_rejected(tmp_path: Path) -> None:
    (section,) = [each for each in sections() if each.path == "window.sliding"]
    wrong = Entry("of no table", "slide", {"const": "a while"}, True)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job_with(section, wrong)))
    (line,) = lint([str(tmp_path / "job.yaml")])
    assert "window.slide: a duration" in line


def test_examples_of_groupings_stand_in_their_fields() -> None:
    assert not [path for path in EXAMPLES if path.startswith("grouping.")]


def test_every_grouping_and_every_section_is_in_the_page(root: Path) -> None:
    text = PAGE.read_text()
    assert text == page()
    for name in GROUPING_MODELS:
        assert f"\n## `grouping.{name}`\n" in text
    for _, entry in EACH:
        assert f"`{entry.name}`" in text
