"""A sink and dead letters of a user's own: found by entry point, checked like ours, written to."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.installed import install_module
from tests.support.oracles import START
from tests.support.running.in_process import job_over, write_lines
from unskew.config.errors import ExternalError, UsageError
from unskew.config.explain import explain
from unskew.config.json_schema import write_schema
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.engine.preflight import check
from unskew.jobs.engine.service import Service
from unskew.jobs.query.pipeline import Pipeline
from unskew.jobs.replay.dead_letter import DeadLetter
from unskew.jobs.replay.reading import read_dead_letters

MODULE = '''
import json
from functools import partial
from pathlib import Path
from typing import Literal

from unskew import DeadLetters, Sink


class LinesSink(Sink):
    """Appends to a file for each partition.

    Results as lines of JSON.
    """

    folder: str
    """Where the files are."""
    needs: str | None = None
    """A file that must exist."""
    case: Literal["upper", "lower"] = "lower"
    """How keys are written."""
    options: dict[str, int | float | str] | None = None
    """Further options."""

    def folders(self):
        return {"folder": self.folder}

    def problems(self, job):
        if self.needs and not Path(self.needs).exists():
            yield f"{self.needs}: does not exist; {job.name} needs it"

    def write(self, results, batch):
        results.repartition(2).foreachPartition(partial(self._append, batch.id))

    def _append(self, batch, rows):
        for row in rows:
            line = {"batch": batch, "key": getattr(row.key, self.case)(), "count": row["count"]}
            with Path(self.folder, f"{line['key']}.json").open("a") as file:
                file.write(json.dumps(line) + "\\\\n")


class ReasonsOnly(DeadLetters):
    """Keeps why each record was rejected."""

    file: str

    def write(self, records, batch, *, more=False):
        reasons = [row.reason for row in records.collect()]
        Path(self.file).write_text(json.dumps([batch.id, reasons, more]))

    def read(self, job):
        for reason in json.loads(Path(self.file).read_text())[1]:
            yield {"reason": reason, "value": job.name.encode()}


class Unread(DeadLetters):
    """Cannot be read back."""

    def write(self, records, batch, *, more=False):
        records.collect()


class Unfinished(Sink):
    """Has no `write`."""
'''.replace("\\\\", "\\")
ENTRY_POINTS = """[unskew.sinks]
lines = user_sinks:LinesSink
unfinished = user_sinks:Unfinished
no_sink = user_sinks:ReasonsOnly

[unskew.dead_letters]
reasons = user_sinks:ReasonsOnly
unread = user_sinks:Unread
"""
FILE = """\
name: words
source: {{type: files, path: in}}
decode: {{type: text}}
operator: {{type: word_count}}
grouping: {{type: level}}
sinks:
  - {first}
  - {second}
dead_letters: {{type: reasons, file: reasons.json}}
checkpoint: checkpoint
"""
CONSOLE = "{type: console}"


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's package, as pip would leave it."""
    written = install_module(tmp_path, monkeypatch, "user_sinks", ENTRY_POINTS, MODULE)
    monkeypatch.chdir(tmp_path)
    return written


def job_file(first: str, second: str = CONSOLE) -> str:
    Path("job.yaml").write_text(FILE.format(first=first, second=second))
    return "job.yaml"


def job_of(folder: Path, **options: Any) -> Job:
    """Words to the user's sink, what has no time to the user's dead letters."""
    write_lines(
        folder / "in",
        "1.json",
        [{"text": "to be or not to be", "at": START.isoformat()}, {"text": "never"}],
    )
    (folder / "out").mkdir()
    return job_over(
        {"type": "files", "path": str(folder / "in")},
        folder,
        "lines",
        operator={"type": "word_count", "text": "text"},
        window={"type": "none"},
        lateness=None,
        sinks=[{"type": "lines", "folder": str(folder / "out"), **options}],
        dead_letters={"type": "reasons", "file": str(folder / "reasons.json")},
    )


def test_its_options_are_explained() -> None:
    explained = explain(job_file("{type: lines, folder: out}"))
    assert explained["sinks"] == [
        {"type": "lines", "folder": "out", "case": "lower"},
        {"type": "console", "rows": 20},
    ]
    assert explained["dead_letters"] == {"type": "reasons", "file": "reasons.json"}


def test_its_options_are_of_the_types_that_it_declares() -> None:
    file = job_file("{type: lines, folder: out, options: {rows: 5, share: 0.5, mark: '5'}}")
    assert explain(file)["sinks"][0]["options"] == {"rows": 5, "share": 0.5, "mark": "5"}


EXPECTED = """
job.yaml:7:38: sinks[0].case: one of upper, lower (got "title")
job.yaml:7:12: sinks[0].type: unknown type (got "line"); did you mean "lines"?
job.yaml:7:27: sinks[0].folder: "checkpoint/out" is not apart from checkpoint "checkpoint"; \
give each a folder of its own
job.yaml:8:12: sinks[1].type: the same as sinks[0].type: both would write there; \
change or remove one
job.yaml:7:12: sinks[0].type: user_sinks:Unfinished does not define write; \
mend or reinstall the package that brings it
job.yaml:7:12: sinks[0].type: user_sinks:ReasonsOnly is no subclass of unskew.Sink; \
mend or reinstall the package that brings it
"""
SINKS = [
    ("{type: lines, folder: out, case: title}", CONSOLE),
    ("{type: line, folder: out}", CONSOLE),
    ("{type: lines, folder: checkpoint/out}", CONSOLE),
    ("{type: lines, folder: out}", "{type: lines, folder: out}"),
    ("{type: unfinished}", CONSOLE),
    ("{type: no_sink}", CONSOLE),
]


@pytest.mark.parametrize(
    ("sinks", "expected"), list(zip(SINKS, EXPECTED.strip().splitlines(), strict=True))
)
def test_its_mistakes_are_linted(sinks: tuple[str, str], expected: str) -> None:
    assert lint([job_file(*sinks)]) == [expected]


def test_the_schema_has_it_when_asked() -> None:
    definitions = json.loads(write_schema(installed=True))["$defs"]
    assert definitions["LinesSink"]["description"] == "Results as lines of JSON."
    assert definitions["LinesSink"]["properties"]["type"] == {
        "const": "lines",
        "description": "Appends to a file for each partition.",
        "type": "string",
    }
    assert "LinesSink" not in json.loads(write_schema())["$defs"]


def test_it_is_asked_for_problems_before_spark_starts(tmp_path: Path) -> None:
    job = job_of(tmp_path, needs=str(tmp_path / "licence"))
    with pytest.raises(ExternalError) as raised:
        check(Pipeline(job, open_journal(job)))
    assert raised.value.problems == (
        f"sinks[0]: {tmp_path}/licence: does not exist; totals needs it",
    )


def test_a_job_names_an_installed_sink_by_its_name_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown type"):
        job_over(
            {"type": "files", "path": "in"}, tmp_path, "x", sinks=[{"type": "user_sinks:LinesSink"}]
        )


def test_dead_letters_of_it_are_listed_if_it_reads_them(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    (tmp_path / "reasons.json").write_text(json.dumps([0, ["no_event_time"], False]))
    assert list(read_dead_letters(job)) == [DeadLetter("no_event_time", None, b"totals", None)]

    unread = load_job(job_file("{type: lines, folder: out}"), {"dead_letters": {"type": "unread"}})
    with pytest.raises(UsageError, match="dead_letters: type unread cannot be read back"):
        list(read_dead_letters(unread))


@pytest.mark.spark
def test_a_job_writes_to_it(spark: SparkSession, tmp_path: Path, module: Path) -> None:
    spark.sparkContext.addPyFile(str(module))
    Service(job_of(tmp_path, case="upper"), spark).run()

    lines = [json.loads(file.read_text()) for file in sorted((tmp_path / "out").iterdir())]
    assert lines == [
        {"batch": 0, "key": key, "count": count}
        for key, count in [("BE", 2), ("NOT", 1), ("OR", 1), ("TO", 2)]
    ]
    assert json.loads((tmp_path / "reasons.json").read_text()) == [0, ["no_event_time"], False]
