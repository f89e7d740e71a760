"""Shipped jobs with something in them changed: `lint` answers with lines, each problem once."""

import os
import re
import time
from pathlib import Path
from random import Random

import pytest

from unskew.config.errors import UsageError
from unskew.config.explain import explain, write_yaml
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.shipped import JOBS_FOLDER

LINE = re.compile(r"job\.yaml:[1-9][0-9]*:[1-9][0-9]*: [^\n]+: [^\n]+")
SECONDS_MAX = 5.0
NAMES = sorted(file.stem for file in JOBS_FOLDER.glob("*.yaml"))
NUMBERS = ["0", "-1", "1e999", "-.inf", ".nan", "010", "0x10", 400 * "9", "1_000", "2026-01-01"]
TEXTS = [
    *('""', '"\\0"', '"\\ud800"', '"\\U0001F600"', '"\u2028"', "\ufeffa", "yes", "%s%n", "{0.x}"),
    *(
        "-5 s",
        "1e5 h",
        f"{20 * '9'} d",
        "0.0000001 s",
        "999999999999 TiB",
        "/dev/zero",
        "../..",
        "/",
    ),
    *("jdbc:postgresql://h:99999/d?password=x", "http://[::1", "s3a://x/y", f'"{70_000 * "a"}"'),
    *('"/* "', '"-- "', '"\'"', f'"{3_000 * "("}"', f'"{3_000 * "1+"}1"', '"`"', '"1e400"'),
    *(f'"a {300 * "ARRAY<"}INT{300 * ">"}"', f'"{300 * "a STRUCT<"}b INT{300 * ">"}"'),
]
STRUCTURES = ["null", "[]", "{}", "[[]]", "{a: b}", "&a [*a]", "&a {a: *a}", "*a", "? a", "- - a"]
STRUCTURES += ["!!python/object/apply:os.system [ls]", "!!binary aGVsbG8=", "<<: *a", "%YAML 9.9"]
REFERENCES = [
    *("${env:UNSKEW_LOOP}", "${file:FOLDER/loop}", "${file:FOLDER/nul}", "${file:FOLDER/pipe}"),
    *("${env:A:-${env:B:-${env:C}}}", "${file:/proc/self/mem}", "${file:/}", "${env:}", "${"),
]
VALUES = [*NUMBERS, *TEXTS, *STRUCTURES, *REFERENCES]
EDITS = ("value", "twice", "drop", "indent", "insert", "byte", "cut", "move")
MUTANTS = 400


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNSKEW_LOOP", 10 * "${env:UNSKEW_LOOP}")
    Path("loop").write_text(f"${{file:{tmp_path}/loop}}")
    Path("nul").write_bytes(b"a\0b")
    os.mkfifo("pipe")


def edit(job: bytes, how: str, number: int, value: bytes) -> bytes:
    lines = job.split(b"\n")
    at = number % len(lines)
    if how in ("byte", "cut"):
        at = number % (len(job) + 1)
        return job[:at] if how == "cut" else job[:at] + bytes([number % 256]) + job[at + 1 :]
    if how == "value":
        lines[at] = lines[at].partition(b":")[0] + b": " + value
    elif how == "twice":
        lines.insert(number % 7, lines[at])
    elif how == "drop":
        del lines[at]
    elif how == "indent":
        lines[at] = (b" ", b"\t", b"- ", b"&a ", b"? ")[number % 5] + lines[at]
    elif how == "insert":
        lines.insert(at, value)
    else:
        lines.append(lines.pop(at))
    return b"\n".join(lines)


def mutate(job: bytes, random: Random) -> bytes:
    """One key with another value, and sometimes more of it changed."""
    keys = [at for at, line in enumerate(job.split(b"\n")) if b":" in line]
    edits = [("value", random.choice(keys)), *[(random.choice(EDITS), random.randrange(10**6))] * 2]
    for how, number in edits[: random.choice((1, 1, 2, 3))]:
        value = random.choice(VALUES).replace("FOLDER", str(Path.cwd()))
        job = edit(job, how, number, value.encode())
    return job


def load_problems(file: str) -> list[str]:
    try:
        load_job(file)
    except UsageError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_changed_lint_answers_with_lines_in_time(name: str) -> None:
    random = Random(name)
    # As `explain` writes it, with every option that there is.
    whole = write_yaml(explain(name)).encode()
    clean = 0
    for number in range(MUTANTS):
        job = mutate(whole, random)
        Path("job.yaml").write_bytes(job)

        begin = time.process_time()
        lines = lint(["job.yaml"])

        assert time.process_time() - begin < SECONDS_MAX, job
        assert len(lines) == len({*lines}), job
        assert all(LINE.fullmatch(line) and line.isprintable() for line in lines), job
        clean += not lines
        if number % 10 == 0:
            assert load_problems("job.yaml") == lines, job
    # Some changes leave a job as good as it was; most do not.
    assert 0 < clean < MUTANTS / 2
