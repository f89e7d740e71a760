"""JAAS lines: what a reference brings arrives unchanged, and no part of it is printed."""

from pathlib import Path

import pytest

from tests.config.test_wrong_jobs import with_the_rest
from unskew.config.lint import lint
from unskew.config.loader import load, load_job
from unskew.config.types import jaas
from unskew.config.types.secrets import redact, reveal

SOURCE = """source:
  type: kafka
  bootstrap_servers: a:1
  subscribe: [lines]
  options:
    kafka.security.protocol: SASL_SSL
    kafka.sasl.mechanism: PLAIN
    kafka.sasl.jaas.config: {}
"""
WRITTEN = "cor\"rect \\horse' battery;"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("T_PASSWORD", WRITTEN)


def write_job(line: str) -> None:
    Path("job.yaml").write_text(with_the_rest(SOURCE.format(line)))


def read_as_java(text: str) -> str:
    """A quoted value as Java's StreamTokenizer reads it."""
    assert text[0] == text[-1]
    value, rest = "", iter(text[1:-1])
    for char in rest:
        assert char != text[0], "the value ends early"
        value += next(rest) if char == "\\" else char
    return value


@pytest.mark.parametrize(
    "written",
    ['password="${env:T_PASSWORD}"', "password='${env:T_PASSWORD}'", "password=${env:T_PASSWORD}"],
)
def test_a_password_with_quotes_is_read_whole(written: str) -> None:
    write_job(f'Plain required username="me" {written};')

    line = reveal(load_job("job.yaml").source.options)["kafka.sasl.jaas.config"]

    value = line.partition("password=")[2].removesuffix(";")
    assert read_as_java(value) == WRITTEN


def test_parts_of_a_password_are_hidden() -> None:
    write_job('Plain required username="me" password="${env:T_PASSWORD}";')

    loaded = load("job.yaml")

    for part in (WRITTEN, "rect", "horse", "battery"):
        assert "***" in redact(f"Value not specified for key {part} in JAAS config", loaded.hidden)


@pytest.mark.parametrize(
    "line",
    [
        'Plain required password="hunter2 x;',
        'Plain required password="hun"ter2";',
        'Plain required password="hunter2"',
        'Plain password="hunter2";',
        "hunter2",
    ],
)
def test_a_line_that_the_client_could_not_read_is_told_without_its_text(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T_JAAS", line)
    write_job("${env:T_JAAS}")

    lines = lint(["job.yaml"])

    assert any(jaas.RULE in each for each in lines)
    assert not any("hunter" in each or "ter2" in each for each in lines)


@pytest.mark.parametrize("name", ["user_alice", "user_x1", "password"])
def test_users_of_a_server_are_secrets(name: str) -> None:
    write_job(f'Plain required username="me" password="${{env:T_PASSWORD}}" {name}="hunter2";')

    (line,) = lint(["job.yaml"])

    assert "a secret may not be written into the file" in line
