"""The jobs that ship, the schema, and the three commands that read jobs."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from jsonschema import Draft202012Validator

from unskew.config.explain import explain, write_yaml
from unskew.config.json_schema import write_schema
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.models.grouping import GROUPING_MODELS, UNROUTED, read_grouping_options
from unskew.config.shipped import JOBS_FOLDER, SCHEMA_FILE, list_shipped_names
from unskew.grouping.registry import GROUPINGS, create
from unskew.jobs.__main__ import main

CPU_SECONDS_MAX = 2.0


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "UNSKEW_CHECKPOINTS", "SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def validator() -> Draft202012Validator:
    """The committed schema, ready to check jobs."""
    schema = json.loads(SCHEMA_FILE.read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_four_jobs_ship() -> None:
    assert list_shipped_names() == ["events_to_delta", "hashtags", "vwap", "word_count"]


def test_shipped_jobs_lint_clean_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", *list_shipped_names()]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.rpartition(": job ")[2] for line in printed.err.splitlines()] == [
        "events_to_delta: kafka -> rows by level over 16 partitions -> table",
        "hashtags: kafka -> hashtags by level over 16 partitions -> kafka, console",
        "vwap: kafka -> vwap by level over 16 partitions -> kafka, files",
        "word_count: kafka -> word_count by level over 16 partitions -> kafka",
    ]


@pytest.mark.parametrize("name", list_shipped_names())
def test_explained_job_lints_clean_and_is_the_same(name: str) -> None:
    Path("explained.yaml").write_text(write_yaml(explain(name)))

    assert lint(["explained.yaml"]) == []
    assert load_job("explained.yaml") == load_job(name)


@pytest.mark.parametrize("name", list_shipped_names())
def test_explained_job_has_every_default(name: str) -> None:
    dumped = load_job(name).model_dump(mode="json", exclude_none=True)

    assert explain(name) == dumped


@pytest.mark.parametrize("name", list_shipped_names())
def test_shipped_job_fits_the_schema_and_points_to_it(
    validator: Draft202012Validator, name: str
) -> None:
    text = (JOBS_FOLDER / f"{name}.yaml").read_text("utf-8")

    validator.validate(yaml.safe_load(text))
    validator.validate(explain(name))
    assert text.startswith("# yaml-language-server: $schema=../schema.json\n")


@pytest.mark.parametrize(
    "change",
    [
        {"partitions": 0},
        {"partition": 16},
        {"trigger": {"type": "interval", "interval": "10"}},
        {"source": {"type": "kafak"}},
        {"operator": {"type": "vwap", "txt": "value"}},
        {"grouping": {"type": "levle"}},
        # `unskew schema --installed` has those of other packages.
        {"operator": {"type": "my_own", "anything": 1}},
        {"sinks": [{"type": "my_own", "anything": 1}]},
        {"dead_letters": {"type": "my_own", "anything": 1}},
    ],
)
def test_schema_refuses_a_wrong_job(
    validator: Draft202012Validator, change: dict[str, object]
) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(explain("word_count") | change)


@pytest.mark.parametrize(
    "change",
    [
        {"partitions": "${env:PARTITIONS:-16}"},
        {"trigger": {"type": "interval", "interval": "${env:INTERVAL}"}},
        {"metrics": {"port": "${env:PORT}", "hot_key_names": "${env:NAMES}"}},
    ],
)
def test_schema_takes_references(
    validator: Draft202012Validator, change: dict[str, object]
) -> None:
    validator.validate(explain("word_count") | change)


def test_defaults_in_the_schema_are_what_a_job_file_may_say() -> None:
    schema = json.loads(write_schema())
    models = [schema, *schema["$defs"].values()]
    fields = [field for model in models for field in model.get("properties", {}).values()]
    given = [field for field in fields if field.get("default") is not None]
    assert len(given) > 50
    for field in given:
        own = {**field, "$defs": schema["$defs"]}
        assert Draft202012Validator(own).is_valid(field["default"]), field


def test_committed_schema_is_fresh() -> None:
    assert SCHEMA_FILE.read_text("utf-8") == write_schema(), "run: unskew schema --output FILE"


def test_every_field_of_the_schema_is_described() -> None:
    schema = json.loads(write_schema())

    for name, model in {"Job": schema, **schema["$defs"]}.items():
        for field, about in model.get("properties", {}).items():
            about_section = schema["$defs"].get(about.get("$ref", "").rpartition("/")[2], {})
            assert (about | about_section).get("description"), f"{name}.{field}"


def test_schema_holds_every_grouping() -> None:
    definitions = json.loads(write_schema())["$defs"]
    types = {
        model.get("properties", {}).get("type", {}).get("const") for model in definitions.values()
    }

    assert {*UNROUTED, *GROUPINGS} <= types
    assert set(GROUPING_MODELS) == {*UNROUTED, *GROUPINGS}


@pytest.mark.parametrize("name", GROUPINGS)
def test_grouping_of_a_job_can_be_made(name: str) -> None:
    job = load_job("word_count", {"grouping": {"type": name}})

    made = create(name, partitions=job.partitions, **read_grouping_options(job.grouping))

    assert made.params == GROUPINGS[name].Params()


@pytest.mark.parametrize("name", GROUPINGS)
@pytest.mark.parametrize("partitions", [1, 10_000])
def test_defaults_of_a_grouping_fit_any_number_of_partitions(name: str, partitions: int) -> None:
    assert create(name, partitions=partitions).setting.partitions == partitions


def test_every_default_of_every_grouping_survives_yaml() -> None:
    for name in GROUPING_MODELS:
        job = load_job("word_count", {"grouping": {"type": name}})
        text = write_yaml(json.loads(job.model_dump_json(exclude_none=True)))
        Path("again.yaml").write_text(text)

        assert load_job("again.yaml") == job


def test_overrides_replace_values_before_they_are_checked() -> None:
    job = load_job(
        "word_count",
        {
            "source.bootstrap_servers": "broker:1234",
            "source.options": {"kafka.client.id": "me"},
            "partitions": 4,
            "sinks.0.topic": "2024",
            "trigger": {"type": "available_now"},
        },
    )

    assert job.source.bootstrap_servers == "broker:1234"
    assert job.source.options == {"kafka.client.id": "me"}
    assert job.partitions == 4
    assert job.sinks[0].topic == "2024"
    assert job.trigger.type == "available_now"


def test_lint_finds_what_two_jobs_share(capsys: pytest.CaptureFixture[str]) -> None:
    text = write_yaml(explain("word_count"))
    Path("a.yaml").write_text(text)
    Path("b.yaml").write_text(text.replace("checkpoints/", "./checkpoints//"))
    line = [line.partition(":")[0] for line in text.splitlines()].index("checkpoint") + 1

    assert main(["lint", "a.yaml", "b.yaml"]) == 2
    assert capsys.readouterr().out == (
        'b.yaml:1:7: name: "word_count" is also in a.yaml: their metrics and logs would mix;'
        " change one of them\n"
        "    name: word_count\n"
        "          ^\n"
        f'b.yaml:{line}:13: checkpoint: "checkpoints/word_count" is also in a.yaml: each job needs'
        " its own; change one of them\n"
        "    checkpoint: ./checkpoints//word_count\n"
        "                ^\n"
    )


def test_lint_takes_a_file_once_that_is_named_twice() -> None:
    assert lint(["word_count", "word_count"]) == []


def test_lint_prints_every_file_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    Path("jobs/deep").mkdir(parents=True)
    Path("jobs/b.yaml").write_text("")
    Path("jobs/deep/a.yml").write_text("- 1\n")
    Path("jobs/notes.txt").write_text("no job")

    assert main(["lint", "jobs", "c.yaml"]) == 2
    printed = capsys.readouterr()
    assert [line.partition(":")[0] for line in printed.out.splitlines()] == [
        "c.yaml",
        "jobs/b.yaml",
        "jobs/deep/a.yml",
        "    - 1",
        "    ^",
    ]
    assert printed.err == "3 files checked: 3 problems\n"


def test_lint_has_colours_on_a_terminal_that_wants_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.yaml").write_text("- 1\n")
    red, dim, off = "\x1b[31;1m", "\x1b[2m", "\x1b[0m"
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["lint", "a.yaml"]) == 2
    said, line, caret = capsys.readouterr().out.splitlines()
    assert said.startswith(f"{red}a.yaml:1:1: ")
    assert (line, caret) == (f"{dim}    - 1{off}", f"{red}    ^{off}")

    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["lint", "a.yaml"]) == 2
    assert "\x1b" not in capsys.readouterr().out


def test_a_folder_is_walked_without_what_tools_keep_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder in (".git", ".venv/lib", "env/lib", "deep", "empty"):
        Path("jobs", folder).mkdir(parents=True)
        if folder != "empty":
            Path("jobs", folder, "a.yaml").write_text("- 1\n")
    Path("jobs/env/pyvenv.cfg").write_text("home = /usr/bin")

    assert [line.partition(":")[0] for line in lint(["jobs"])] == ["jobs/deep/a.yaml"]
    assert lint(["jobs/empty"]) == [
        "jobs/empty:1:1: file: is a folder without YAML files; name a file"
    ]


def test_lint_reads_standard_input_and_shows_no_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'nam: a\nsinks: [{password: "hunter2", typ: x}]\n\tx: ['
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["lint", "-"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("<stdin>:3:1: yaml: ")
    assert "hunter2" not in out

    text = 'nam: a\nsinks: [{password: "hunter2", typ: x}]\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["lint", "-"]) == 2
    out = capsys.readouterr().out
    assert '<stdin>:1:1: nam: unknown key; did you mean "name"?\n    nam: a\n    ^\n' in out
    assert "\n    sinks: [{password: ***\n                       ^\n" in out
    assert "hunter2" not in out


def test_explain_prints_yaml_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "vwap"]) == 0
    as_text = capsys.readouterr().out
    assert main(["explain", "vwap", "--json"]) == 0

    assert yaml.safe_load(as_text) == json.loads(capsys.readouterr().out) == explain("vwap")


def test_explain_of_a_bad_job_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.yaml").write_text("")

    assert main(["explain", "job.yaml"]) == 2
    assert capsys.readouterr().err == (
        "job.yaml:1:1: job: the file is empty; see the shipped jobs for a start\n"
    )


def test_schema_command_writes_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert main(["schema", "--output", "schema.json"]) == 0
    assert main(["schema", "--check"]) == 0

    assert printed == Path("schema.json").read_text("utf-8") == SCHEMA_FILE.read_text("utf-8")


def test_schema_command_where_it_cannot_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--output", "no/such/folder.json"]) == 1
    assert capsys.readouterr().err == (
        "no/such/folder.json: cannot be written: No such file or directory\n"
    )


def test_texts_that_other_readers_take_for_something_else_are_quoted() -> None:
    texts = ["yes", "010", "1e-4", "0o17", "1_000", "null", "", " a", "a: b", "12:30", "- a", "é\n"]

    assert yaml.safe_load(write_yaml({"texts": texts})) == {"texts": texts}
    assert "texts:\n  - 'yes'\n  - '010'\n  - '1e-4'\n  - '0o17'\n" in write_yaml({"texts": texts})


def test_lint_is_quick_and_starts_no_spark() -> None:
    code = (
        "import sys, time; from unskew.jobs.__main__ import main;"
        "code = main(['lint', 'vwap', 'word_count']);"
        "assert not {'pyspark', 'py4j', 'fastavro', 'confluent_kafka'} & set(sys.modules);"
        "print(code, time.process_time())"
    )
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root}
    seconds = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        status, spent = done.stdout.split()
        assert status == "0"
        seconds.append(float(spent))
        if seconds[-1] < CPU_SECONDS_MAX:
            break

    assert min(seconds) < CPU_SECONDS_MAX
