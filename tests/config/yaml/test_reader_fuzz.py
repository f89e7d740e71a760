"""Whatever is in a file, `lint` answers with lines of its form and `load_job` with UsageError."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unskew.config.errors import UsageError
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.config.shipped import JOBS_FOLDER

LINE = re.compile(r"job\.yaml:[1-9][0-9]*:[1-9][0-9]*: [^\n]+: [^\n]+")
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
KEYS = st.sampled_from(
    [
        *Job.model_fields,
        *("type", "subscribe", "pattern", "assign", "options", "schema", "topic", "path", "start"),
        *("tls", "basic_auth", "password", "kafka.sasl.jaas.config", "duration", "top", ""),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["kafka", "files", "json", "word_count", "level", "none", "sliding", "10 s"]),
    st.sampled_from(["${env:HOME}", "${env:NOPE_NOPE}", "${file:/etc/hostname}", "$${", "${"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=25,
)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(content: bytes) -> None:
    Path("job.yaml").write_bytes(content)

    lines = lint(["job.yaml"])

    assert lines
    for line in lines:
        assert LINE.fullmatch(line)
        assert line.isprintable()
    with pytest.raises(UsageError) as caught:
        load_job("job.yaml")
    assert list(caught.value.problems) == lines


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    check(content)


@QUICK
@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@`#?,\n\t ${}", max_size=80))
def test_any_punctuation(text: str) -> None:
    check(text.encode())


@QUICK
@given(st.dictionaries(KEYS, VALUES, max_size=12))
def test_any_mapping(document: object) -> None:
    check(yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "replace"))


@QUICK
@given(KEYS, VALUES)
def test_any_value_in_a_good_job(key: str, value: object) -> None:
    document = yaml.safe_load((JOBS_FOLDER / "word_count.yaml").read_text("utf-8"))
    document[key] = value
    Path("job.yaml").write_text(yaml.safe_dump(document, allow_unicode=True), "utf-8", "replace")

    for line in lint(["job.yaml"]):
        assert LINE.fullmatch(line)
