"""Wrong job files in an editor: what yaml-language-server says of them and would write instead."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.test_wrong_jobs import with_the_rest
from tests.support.running.programs import find_program
from tests.support.yaml_server import YamlServer, install_server, running_server
from unskew.config.shipped import JOBS_FOLDER, SCHEMA_FILE, list_shipped_names

pytestmark = pytest.mark.slow
FIRST = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"


@pytest.fixture(scope="module")
def server() -> Iterator[YamlServer]:
    find_program("node", "nodejs")
    find_program("npm")
    try:
        program = install_server()
    except OSError as error:
        pytest.skip(f"yaml-language-server cannot be installed: {error}")
    with running_server(program) as server:
        yield server


def test_shipped_jobs_are_right_by_the_schema_that_they_name(server: YamlServer) -> None:
    for name in list_shipped_names():
        assert server.find_problems(JOBS_FOLDER / f"{name}.yaml") == [], name


TYPES = {
    "decode": ["text", "json", "csv", "avro"],
    "source": ["kafka", "files"],
    "sinks": ["kafka", "files", "table", "postgres", "console", "python", "memory"],
}
OPERATORS = ["aggregate", "results", "word_count", "vwap", "hashtags", "rows", "python", "paced"]


def not_accepted(values: list[str]) -> list[str]:
    """What the server says of a value that is none of these."""
    named = ", ".join(f'"{value}"' for value in values)
    return [f"Value is not accepted. Valid values: {named}."]


CASES = [
    (
        "decode: {type: jsn}",
        not_accepted(TYPES["decode"]),
        TYPES["decode"],
    ),
    (
        "source: {type: kafak, subscribe: [lines]}",
        not_accepted(TYPES["source"]),
        TYPES["source"],
    ),
    (
        "source: {type: kafka, subscribe: [lines], brokers: b}",
        ['Missing property "bootstrap_servers".', "Property brokers is not allowed."],
        TYPES["source"],
    ),
    (
        "sinks: [{type: kafka, topik: a}]",
        ['Missing property "topic".', "Property topik is not allowed."],
        TYPES["sinks"],
    ),
    (
        "window: {type: tumbling}",
        ['Missing property "duration".'],
        ["none", "tumbling", "sliding"],
    ),
    (
        "trigger: {type: interval, interval: 10}",
        ['Incorrect type. Expected "string".'],
        ["interval", "available_now"],
    ),
    (
        "operator: {type: word_count, txt: value}",
        ["Property txt is not allowed."],
        OPERATORS,
    ),
    (
        "operator: {type: word_cuont}",
        not_accepted(OPERATORS),
        OPERATORS,
    ),
    (
        "sinks: [{type: kafak}]",
        not_accepted(TYPES["sinks"]),
        TYPES["sinks"],
    ),
    (
        "grouping: {type: level, slak: 0.1}",
        ["Property slak is not allowed."],
        ["level", "none", "local", "whole"],
    ),
    (
        "operators: [{name: a, kee: b, columns: {n: count(*)}, sinks: [{type: console}]}]",
        ['Missing property "key".', "Property kee is not allowed."],
        TYPES["sinks"],
    ),
    ("partitions: many", ['Incorrect type. Expected "integer".'], ["16"]),
    ("partition: 3", ["Property partition is not allowed."], ["partitions"]),
    (
        "merge: {output: complete}",
        not_accepted(["update", "append"]),
        ["update", "append"],
    ),
]


def find_start(wrong: str) -> int:
    """Where the value stands that is to be completed; of an unknown key, that key."""
    if wrong.startswith("partition:"):
        return len("partition")
    for name in ("type: ", "output: ", ": "):
        if name in wrong:
            return wrong.find(name) + len(name)
    raise AssertionError(wrong)


@pytest.mark.parametrize(("wrong", "said", "offered"), CASES)
def test_of_a_wrong_file_it_says_what_is_wrong_and_offers_what_is_right(
    server: YamlServer, tmp_path: Path, wrong: str, said: list[str], offered: list[str]
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(FIRST + with_the_rest(f"{wrong}\n"))
    assert server.find_problems(file) == [f"2: {text}" for text in said]
    words = server.complete(file, 1, find_start(wrong))
    assert offered, "nothing would be offered where something is wrong"
    assert set(offered) <= set(words)
    if wrong.startswith(tuple(TYPES)):
        assert sorted(words) == sorted(offered)


def test_the_options_of_the_chosen_type_are_offered(server: YamlServer, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(f"{FIRST}source:\n  type: files\n  \n")
    server.find_problems(file)
    words = server.complete(file, 3, 2)
    assert {"path", "files_per_batch"} <= set(words)
    assert "bootstrap_servers" not in words
