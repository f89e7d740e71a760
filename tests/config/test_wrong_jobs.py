"""Ways of writing a job wrong, each with the whole of what is printed.

A case in `wrong_jobs/*.txt` is its title after `===`, the sections that replace those of a good job
(they come first, so that the lines count from one), and the expected lines after `=> `.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from unskew.config.lint import lint

TABLE = Path(__file__).parent / "wrong_jobs"
GOOD_JOB = {
    "name": "name: word_count",
    "source": "source: {type: kafka, bootstrap_servers: '127.0.0.1:9092', subscribe: [lines]}",
    "decode": "decode: {type: text}",
    "operator": "operator: {type: word_count}",
    "grouping": "grouping: {type: key}",
    "sinks": "sinks: [{type: console}]",
    "dead_letters": "dead_letters: {type: files, path: bad}",
    "checkpoint": "checkpoint: checkpoints/word_count",
}
ENVIRONMENT = {
    "METRICS_PASSWORD": "correct horse",
    "UNSKEW_TEST_EMPTY": "",
    "UNSKEW_TEST_LIST": "[{type: console}]",
    "UNSKEW_TEST_NAME": "word_count",
    "UNSKEW_TEST_OCTAL": "010",
    "UNSKEW_TEST_PASSWORD": "battery staple",
    "UNSKEW_TEST_WORD": "many",
    "UNSKEW_TEST_ZERO": "0",
}
AVRO_FILES = {
    "trade.avsc": '{"type": "record", "name": "Trade", "fields": ['
    '{"name": "symbol", "type": "string"}, {"name": "price", "type": "double"},'
    '{"name": "volume", "type": "long"}]}',
    "string.avsc": '{"type": "string"}',
    "unknown.avsc": '{"type": "record", "name": "T", "fields": [{"name": "a", "type": "strin"}]}',
    "broken.avsc": '{"type": "record",\n  "name": ',
    "no_fields.avsc": '{"type": "record", "name": "T"}',
    "recursive.avsc": '{"type": "record", "name": "T", "namespace": "a", "fields": ['
    '{"name": "n", "type": ["null", "T"]}, {"name": "m", "type": {"type": "array", '
    '"items": "a.T"}}]}',
    "java.avsc": '{"type": "record", "name": "a b", "aliases": "c", "fields": ['
    '{"name": "a-b", "type": "int"}, {"name": "n", "type": "int", "order": "up"},'
    '{"name": "N", "type": "int"}, {"name": "u", "type": ["int", "int"]},'
    '{"name": "v", "type": [["int"]]}, {"name": "w", "type": {"type": {"type": "int"}}}]}',
    "sizes.avsc": '{"type": "record", "name": "T", "fields": ['
    '{"name": "f", "type": {"type": "fixed", "name": "F", "size": 2147483647}},'
    '{"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 39}},'
    '{"name": "s", "type": {"type": "string", "logicalType": "decimal", "precision": 3}}]}',
    "deep.avsc": '{"type": "record", "name": "T", "fields": [{"name": "d", "type": '
    + '{"type": "array", "items": ' * 101
    + '"int"'
    + "}" * 101
    + "}]}",
    "no_text.avsc": '{"type": "record", "name": "\\ud800", "fields": ['
    '{"name": "a", "type": "\\udfff"}]}',
    "no_type.avsc": '{"type": "record", "name": "T", "fields": ['
    '{"name": "a", "type": "\\udfff\\n"}]}',
    "lists.avsc": '{"type": "record", "name": "T", "aliases": [""], "fields": ['
    '{"name": "e", "aliases": [1], "type": {"type": "enum", "name": "E", "symbols": "A"}}]}',
    "ours.avsc": '{"type": "record", "name": "T", "fields": ['
    '{"name": "s", "type": "string"}, {"name": "_Present", "type": "int"}]}',
}
_TOP_LEVEL_KEY = re.compile(r"^([a-z_]+):", re.MULTILINE)


def cases() -> Iterator[tuple[str, str, list[str]]]:
    for file in sorted(TABLE.glob("*.txt")):
        for block in file.read_text("utf-8").split("=== ")[1:]:
            title, _, body = block.partition("\n")
            written = [line for line in body.splitlines() if not line.startswith("=> ")]
            expected = [line[3:] for line in body.splitlines() if line.startswith("=> ")]
            yield f"{file.stem}: {title}", "".join(f"{line}\n" for line in written), expected


def with_the_rest(written: str) -> str:
    given = set(_TOP_LEVEL_KEY.findall(written))
    if "operators" in given:
        given |= {"operator", "sinks"}
    rest = [text for name, text in GOOD_JOB.items() if name not in given]
    return written + "".join(f"{text}\n" for text in rest)


CASES = list(cases())


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name, text in AVRO_FILES.items():
        Path(name).write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("title", "written", "expected"), CASES, ids=[title for title, _, _ in CASES]
)
def test_bad_job_is_explained(title: str, written: str, expected: list[str]) -> None:
    whole = title.endswith("(whole file)")
    Path("job.yaml").write_text(written if whole else with_the_rest(written), "utf-8")

    lines = lint(["job.yaml"])

    assert expected, "a case without expected lines proves nothing"
    assert lines == expected


def test_the_job_that_cases_change_is_good() -> None:
    Path("job.yaml").write_text(with_the_rest(""), "utf-8")

    assert lint(["job.yaml"]) == []


def test_there_are_many_cases() -> None:
    assert len({title for title, _, _ in CASES}) == len(CASES) > 200
