"""Operators of a user's own: found by entry point, checked like ours, never by import path."""

import json
from pathlib import Path

import pytest

from tests.support.installed import install_module
from unskew.config.explain import explain
from unskew.config.json_schema import write_schema
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.yaml.references import SECRET_IN_FILE
from unskew.grouping.registry import GROUPINGS

MODULE = '''
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from unskew import Operator, OperatorOptions


class ScoreOptions(OperatorOptions):
    """Scores each key with a model."""

    model: Path
    """The model's file."""
    threshold: Annotated[Decimal, Field(ge=0, le=1)] = Decimal("0.5")
    """Above it, a key counts."""
    sizes: tuple[int, int] = (1, 2)
    """Two sizes."""
    registry_login: SecretStr | None = None
    """For the registry of models."""


class Plain(Operator):
    """Counts."""

    key = "key"
    partial_columns = {}
    merge = direct = {"count": "count(1)"}


class Score(Plain):
    Options = ScoreOptions
    splits = False


class NoOptions(Plain):
    pass


class NoMerge(Operator):
    Options = ScoreOptions
    key = "key"


class NoOperator:
    Options = ScoreOptions
'''
WHOLE = [name for name, grouping in GROUPINGS.items() if not grouping.splits]
ENTRY_POINTS = """[unskew.operators]
score = user_operators:Score
no_options = user_operators:NoOptions
no_merge = user_operators:NoMerge
no_operator = user_operators:NoOperator
no_module = user_operators_nowhere:Score
word_count = user_operators:Score
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_module(tmp_path, monkeypatch, "user_operators", ENTRY_POINTS, MODULE)
    monkeypatch.setenv("UNSKEW_TEST_LOGIN", "correct horse")
    monkeypatch.chdir(tmp_path)


def job_with(operator: str, grouping: str = "key") -> str:
    Path("job.yaml").write_text(
        f"operator: {operator}\n"
        f"grouping: {{type: {grouping}}}\n"
        "name: score\n"
        "source: {type: kafka, bootstrap_servers: 'a:1', subscribe: [lines]}\n"
        "decode: {type: text}\n"
        "sinks: [{type: console}]\n"
        "dead_letters: {type: files, path: bad}\n"
        "checkpoint: checkpoints/score\n"
    )
    return "job.yaml"


def test_options_are_those_of_the_operator() -> None:
    operator = load_job(job_with("{type: score, model: m.onnx, sizes: [3, 4]}")).operator

    assert operator.type == "score"
    assert operator.model_dump(mode="json") == {
        "model": "m.onnx",
        "threshold": "0.5",
        "sizes": [3, 4],
        "registry_login": None,
        "type": "score",
    }


def test_explained_job_is_the_same_job() -> None:
    file = job_with("{type: score, model: m.onnx, registry_login: '${env:UNSKEW_TEST_LOGIN}'}")

    assert explain(file)["operator"] == {
        "type": "score",
        "model": "m.onnx",
        "threshold": "0.5",
        "sizes": [1, 2],
        "registry_login": "${env:UNSKEW_TEST_LOGIN}",
    }


EXPECTED = """
job.yaml:1:51: operator.threshold: at most 1 (got 2)
job.yaml:1:54: operator.mode: unknown key; did you mean "model"? That key is set already
job.yaml:1:18: operator.type: unknown type (got "scor"); did you mean "score"?
job.yaml:2:18: grouping.type: shuffle splits keys, and operator.type score forbids that; WHOLE
job.yaml:1:56: operator.registry_login: SECRET
job.yaml:1:18: operator.type: user_operators:NoOptions has no Options, a subclass of \
OperatorOptions; mend or reinstall the package that brings it
job.yaml:1:18: operator.type: user_operators_nowhere:Score cannot be imported: \
ModuleNotFoundError: No module named 'user_operators_nowhere'; mend or reinstall \
the package that brings it
job.yaml:1:18: operator.type: user_operators:NoMerge does not define direct, merge, \
partial_columns; mend or reinstall the package that brings it
job.yaml:1:18: operator.type: user_operators:NoOperator is no subclass of unskew.Operator; \
mend or reinstall the package that brings it
"""
LINES = (
    EXPECTED.replace("WHOLE", f"keys stay whole with {', '.join(['none', *WHOLE])}")
    .replace("SECRET", "; ".join(SECRET_IN_FILE))
    .strip()
    .splitlines()
)


@pytest.mark.parametrize(
    ("operator", "grouping", "expected"),
    [
        ("{type: score, model: m.onnx, threshold: 2, mode: fast}", "key", LINES[:2]),
        ("{type: scor}", "key", LINES[2:3]),
        ("{type: score, model: m.onnx}", "shuffle", LINES[3:4]),
        ("{type: score, model: m.onnx}", "local", [LINES[3].replace("shuffle", "local")]),
        ("{type: score, model: m.onnx}", "auto", [LINES[3].replace("shuffle", "auto")]),
        ("{type: score, model: m.onnx}", "none", []),
        ("{type: score, model: m.onnx, registry_login: hunter2}", "key", LINES[4:5]),
        ("{type: no_options}", "key", LINES[5:6]),
        ("{type: no_module}", "key", LINES[6:7]),
        ("{type: no_merge}", "key", LINES[7:8]),
        ("{type: no_operator}", "key", LINES[8:]),
    ],
)
def test_bad_job_is_explained(operator: str, grouping: str, expected: list[str]) -> None:
    assert lint([job_with(operator, grouping)]) == expected


def test_a_shipped_operator_cannot_be_replaced() -> None:
    assert type(load_job(job_with("{type: word_count}")).operator).__name__ == "WordCount"


def test_schema_holds_installed_operators_only_when_asked() -> None:
    assert "registry_login" not in write_schema()
    assert (
        "registry_login" in json.loads(write_schema(installed=True))["$defs"]["Score"]["properties"]
    )
