"""What `unskew run` refuses before Spark starts: one line a problem, exit code 1."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.running.job_process import job_words, make_topics
from unskew.config.loader import load_job
from unskew.jobs.__main__ import main
from unskew.jobs.checkpoint.files import JOURNAL_FOLDER, open_journal
from unskew.jobs.checkpoint.identity import FILE, has_routing_changed, make_identity, write_identity
from unskew.jobs.commands.run import parse_overrides
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.query.pipeline import Pipeline

pytestmark = pytest.mark.e2e
ProblemsOf = Callable[..., list[str]]


@pytest.fixture
def problems_of(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> ProblemsOf:
    """Runs the job with these settings; its lines of error."""
    make_topics(broker, "refusals")

    def run(*more: str, code: int = 1, **settings: object) -> list[str]:
        words = job_words(broker.address, tmp_path, "refusals", **settings)
        assert main([*words, "--log", "console", *more]) == code
        return capsys.readouterr().err.splitlines()

    return run


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker has a second to answer."""
    monkeypatch.setattr("unskew.jobs.engine.preflight.ANSWER_SECONDS", 1.0)


def pipeline(broker: Broker, folder: Path, **settings: object) -> Pipeline:
    words = job_words(broker.address, folder, "refusals", **settings)
    job = load_job("word_count", parse_overrides(words[3::2]))
    return Pipeline(job, open_journal(job))


def claim(started: Pipeline) -> bool:
    """As a start does it: is the routing as it was?"""
    changed = has_routing_changed(started.job)
    write_identity(started.job)
    return not changed


def test_topics_that_are_missing_are_named_all_at_once(
    problems_of: ProblemsOf, broker: Broker
) -> None:
    lines = problems_of(source__subscribe="[refusal, refusals]", dead_letters__topic="nowhere")
    assert lines == [
        (
            f"source.subscribe: refusal on {broker.address}: no such topic; did you mean"
            ' "refusals"? Otherwise unskew topics JOB makes it'
        ),
        next(line for line in lines if line.startswith("dead_letters.topic: nowhere on")),
    ]


@pytest.mark.usefixtures("impatient")
def test_a_broker_that_is_away_is_named(problems_of: ProblemsOf) -> None:
    lines = problems_of(source__bootstrap_servers="127.0.0.1:1")
    (line,) = lines
    assert line.startswith("bootstrap_servers: 127.0.0.1:1: no broker answers within 1 s; start it")


def test_brokers_that_ask_who_we_are_are_left_to_spark(broker: Broker, tmp_path: Path) -> None:
    from unskew.jobs.engine.preflight import check

    known = pipeline(broker, tmp_path)
    options = {"kafka.security.protocol": "SASL_SSL"}
    source = known.job.source.model_copy(
        update={"bootstrap_servers": "127.0.0.1:1", "options": options}
    )
    check(Pipeline(known.job.model_copy(update={"source": source}), known.journal))


def test_a_checkpoint_of_another_job(
    problems_of: ProblemsOf, broker: Broker, tmp_path: Path
) -> None:
    made(broker, tmp_path)
    (line,) = problems_of(name="other")
    assert line == (
        f'checkpoint: {tmp_path}/refusals: belongs to the job "word_count", not to "other"; name'
        " another checkpoint folder to start over"
    )


def test_settings_that_a_checkpoint_fixes(
    problems_of: ProblemsOf, broker: Broker, tmp_path: Path
) -> None:
    made(broker, tmp_path)
    lines = problems_of(
        merge__partitions=3, window="{type: tumbling, duration: 1 minute}", lateness="10 s"
    )
    assert [line.split(" when ")[0] for line in lines] == [
        "window: was type none",
        "merge.partitions: was 2",
    ]
    assert all("change it back, or name another checkpoint folder" in line for line in lines)


def test_settings_of_the_routing_may_change_and_begin_anew(broker: Broker, tmp_path: Path) -> None:
    made(broker, tmp_path)
    assert claim(pipeline(broker, tmp_path)) is True
    assert claim(pipeline(broker, tmp_path, partitions=9)) is False
    assert claim(pipeline(broker, tmp_path, partitions=9)) is True
    assert claim(pipeline(broker, tmp_path, partitions=9, grouping__type="fish")) is False


def test_a_checkpoint_that_unskew_did_not_make(
    problems_of: ProblemsOf, broker: Broker, tmp_path: Path
) -> None:
    made(broker, tmp_path)
    (tmp_path / "refusals" / FILE).unlink()
    assert "belongs to a query that Unskew did not start" in problems_of()[0]
    (tmp_path / "refusals" / FILE).write_text("{")
    assert "cannot be read; restore it" in problems_of()[0]
    for name in ("fixed", "routing"):
        lacking = make_identity(pipeline(broker, tmp_path).job)
        del lacking[name]
        (tmp_path / "refusals" / FILE).write_text(json.dumps(lacking))
        assert "cannot be read; restore it" in problems_of()[0]
    newer = make_identity(pipeline(broker, tmp_path).job) | {"version": 99}
    (tmp_path / "refusals" / FILE).write_text(json.dumps(newer))
    assert "of another version of Unskew (format 99)" in problems_of()[0]


def test_a_job_that_failed_before_its_query_began_holds_no_checkpoint(
    broker: Broker, tmp_path: Path
) -> None:
    claim(pipeline(broker, tmp_path))
    assert claim(pipeline(broker, tmp_path, merge__partitions=3)) is True


def test_a_damaged_journal(problems_of: ProblemsOf, broker: Broker, tmp_path: Path) -> None:
    made(broker, tmp_path)
    folder = tmp_path / "refusals" / JOURNAL_FOLDER / f"{3:012d}"
    folder.mkdir(parents=True)
    (folder / "source-00000.state").write_bytes(b"garbage")
    commits = tmp_path / "refusals" / "commits"
    commits.mkdir()
    (commits / "3").touch()
    (line,) = problems_of()
    assert line.startswith(f"journal: {folder}/source-00000.state: ")
    assert "remove the journal's folder" in line


def test_folders_that_cannot_be_made(problems_of: ProblemsOf, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lines = problems_of(checkpoint=tmp_path / "file" / "c")
    assert lines[0].startswith(f"checkpoint: {tmp_path}/file/c: cannot be written: ")
    assert len(lines) == 1


def test_a_port_that_is_taken_and_a_master_that_is_none(problems_of: ProblemsOf) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        (line,) = problems_of(metrics__port=port)
        assert line.startswith(f"metrics: 127.0.0.1:{port}: cannot be listened on: Address already")
    (line,) = problems_of(code=2, spark__spark__master="loca")
    assert line.startswith('--set spark["spark.master"]: loca: no master that Spark knows')


@pytest.mark.usefixtures("impatient")
def test_debug_shows_the_trace_and_json_logs_stay_json(
    problems_of: ProblemsOf, capsys: pytest.CaptureFixture[str]
) -> None:
    away = {"source__bootstrap_servers": "127.0.0.1:1"}
    assert "Traceback" in problems_of("--debug", **away)[0]
    (line,) = problems_of("--log", "json", **away)
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("failed", "error")
    assert event["problems"][0].startswith("bootstrap_servers: 127.0.0.1:1: no broker")


def test_set_replaces_values_of_every_kind() -> None:
    assert parse_overrides(
        ["partitions=3", "sinks[0].topic=a=b", "lateness=null", "source.subscribe=[a, b]"],
        available_now=True,
    ) == {
        "partitions": 3,
        "sinks[0].topic": "a=b",
        "lateness": None,
        "source.subscribe": ["a", "b"],
        "trigger": {"type": "available_now"},
    }
    changes = parse_overrides(
        ["spark.spark.sql.ansi.enabled=false", "source.options.kafka.client.id=x"]
    )
    job = load_job("word_count", changes)
    assert job.spark["spark.sql.ansi.enabled"] == "false"
    assert job.source.options == {"kafka.client.id": "x"}  # type: ignore[union-attr]


@pytest.mark.parametrize("word", ["partitions", "=3", ".a=3", "a..b=1", "a=[", "a=010", "a= "])
def test_a_wrong_set_is_an_error_of_use(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "word_count", "--set", word]) == 2
    error = capsys.readouterr().err
    assert error.startswith("run: --set")
    assert error.count("\n") == 1


def test_a_set_without_a_value_speaks_of_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "word_count", "--set", "source.path="]) == 2
    error = capsys.readouterr().err
    assert error == "run: --set source.path: no value; '' is an empty text, null none\n"


def test_a_wrong_value_names_the_flag_that_brought_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["partitions=none", "sinks[0].topik=a", "source.type=kafak", "wehre.a=b"]
    assert main(["run", "word_count", *(word for each in words for word in ("--set", each))]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == '--set partitions: a whole number (got "none")'
    assert sorted(lines[1:]) == [
        '--set sinks[0].topik: unknown key; did you mean "topic"? That key is set already',
        '--set source.type: unknown type (got "kafak"); did you mean "kafka"?',
        '--set wehre: unknown key; did you mean "where"?',
    ]


def made(broker: Broker, folder: Path) -> None:
    """A checkpoint as a query leaves it."""
    claim(pipeline(broker, folder))
    (folder / "refusals" / "offsets").mkdir()
