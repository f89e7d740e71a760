"""`type: python`: what is said of a file, a class and options that are wrong; what may change."""

from pathlib import Path
from typing import Any

import pytest

from unskew.config.errors import ExternalError, UsageError
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.identity import (
    compare_identity,
    describe_changed_code,
    make_identity,
    write_identity,
)
from unskew.jobs.commands.project.init import TEMPLATE
from unskew.jobs.operators.registry import make_operator

CODE = (TEMPLATE / "scoring.py.txt").read_text()


def job_in(folder: Path, code: str = CODE, **operator: Any) -> Job:
    (folder / "job_scoring.py").write_text(code)
    (folder / "job.yaml").write_text((TEMPLATE / "job.yaml.txt").read_text())
    section = {"type": "python", "file": "job_scoring.py", "class": "Scoring", **operator}
    changes = {"operator": section, "checkpoint": str(folder / "checkpoint")}
    return load_job(folder / "job.yaml", changes)


def test_an_operator_is_what_its_file_says(tmp_path: Path) -> None:
    job = job_in(tmp_path, options={"least": 3})
    operator = make_operator(job.operator)
    assert type(operator).__name__ == "Scoring"
    assert operator.options.least == 3
    assert job.operator.files() == [str(tmp_path / "job_scoring.py")]


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        (
            {"class": "Scorin"},
            'operator.class: no such operator in {file} (got "Scorin"); did you mean "Scoring"?',
        ),
        ({"file": "scorin.py"}, "a file that is there"),
        ({"file": "json.py"}, "a name that no module of Python's has, not json"),
        ({"module": "json"}, "one of file and module"),
        ({"file": None, "module": "no_such"}, "no_such cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, operator: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError) as raised:
        job_in(tmp_path, **operator)
    (problem,) = raised.value.problems
    assert line.format(file=tmp_path / "job_scoring.py") in problem


OPTIONS = '''\
    least: int
    """The least amount; below it nothing counts."""
    most: int = 10
    marks: list[float] = []
    name: str = ""

    @model_validator(mode="after")
    def _in_order(self):
        if self.least > self.most:
            raise ValueError(f"least is above most ({self.least} > {self.most})")
        return self
'''


def write_job(folder: Path, options: str) -> Path:
    """A job with an operator that has these `options`, which begin in line 3."""
    before, _, after = CODE.partition("    least: int = 0\n")
    code = before + OPTIONS + after.partition("\n")[2]
    (folder / "scoring.py").write_text(f"from pydantic import model_validator\n{code}")
    section = "operator:\n  type: python\n  file: scoring.py\n  class: Scoring\n"
    template = (TEMPLATE / "job.yaml.txt").read_text()
    rest = template.replace(f"{section}  options: {{least: 10}}\n", "")
    assert rest != template
    file = folder / "job.yaml"
    file.write_text(f"{section}{options}\n{rest}")
    return file


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (
            "  options:\n    least: x\n    mozt: 2\n    marks: [1, two]",
            [
                '6:12: operator.options.least: a whole number (got "x")',
                '7:5: operator.options.mozt: unknown key; did you mean "most"?',
                '8:16: operator.options.marks[1]: a number (got "two")',
            ],
        ),
        (
            "  options: {most: 1_000, limit: 3}",
            [
                "5:3: operator.options.least: missing; add it: the least amount",
                '5:19: operator.options.most: a whole number (got "1_000"); write 1000',
                "5:26: operator.options.limit: unknown key; one of least, most, marks, name",
            ],
        ),
        (
            "  options: {least: 11}",
            ["5:3: operator.options: least is above most (11 > 10)"],
        ),
        ("", ["1:1: operator.options.least: missing; add it: the least amount"]),
    ],
)
def test_every_wrong_option_is_named_where_it_stands(
    tmp_path: Path, options: str, lines: list[str]
) -> None:
    file = write_job(tmp_path, options)
    assert lint([str(file)]) == [f"{file}:{line}" for line in lines]


def test_a_reference_may_bring_a_text_of_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_NAME", "2024")
    file = write_job(tmp_path, "  options:\n    least: 1\n    name: ${env:TEST_NAME}")
    assert make_operator(load_job(file).operator).options.name == "2024"


def test_a_file_that_cannot_be_imported_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"job_scoring\.py:2 cannot be imported: SyntaxError"):
        job_in(tmp_path, "x = 1\nclass\n")
    with pytest.raises(UsageError, match="Scoring does not define add"):
        job_in(tmp_path, CODE.replace("def add(", "def added("))


def test_a_key_that_nothing_decodes_is_named_in_the_class(tmp_path: Path) -> None:
    code = CODE.replace(
        "    least: int = 0\n", '    least: int = 0\n    who: Expression = "custmer"\n'
    )
    code = code.replace(
        "from unskew import", "from unskew.config.models.base import Expression\nfrom unskew import"
    )
    with pytest.raises(UsageError, match=r'options\.who: no column "custmer"'):
        job_in(tmp_path, code)


def test_what_the_class_itself_names_is_checked_like_the_file(tmp_path: Path) -> None:
    key = 'key = "customer"'
    assert key in CODE
    with pytest.raises(UsageError, match=r'operator\.class: no column "custmer" .*"customer"\?'):
        job_in(tmp_path, CODE.replace(key, 'key = "upper(custmer)"'))
    raising = "key = property(lambda self: 1 / 0)"
    with pytest.raises(UsageError, match="Scoring does not say its key and inputs: ZeroDivision"):
        job_in(tmp_path, CODE.replace(key, raising))


def test_a_checkpoint_fixes_the_state_and_not_the_code(tmp_path: Path) -> None:
    first = make_identity(job_in(tmp_path))
    same_state = make_identity(job_in(tmp_path, CODE.replace(">= self", "> self")))
    assert same_state["fixed"] == first["fixed"]
    assert same_state["operator.code"] != first["operator.code"]
    other_state = make_identity(job_in(tmp_path, CODE.replace("max(largest)", "min(largest)")))
    assert other_state["fixed"] != first["fixed"]


def test_a_changed_file_is_named_and_taken_unless_it_changes_the_state(tmp_path: Path) -> None:
    first = job_in(tmp_path)
    write_identity(first)
    (Path(first.checkpoint) / "offsets").mkdir()
    assert describe_changed_code(first) is None
    changed = job_in(tmp_path, CODE.replace(">= self", "> self"))
    sentence = describe_changed_code(changed)
    assert sentence is not None
    assert sentence.startswith("operator.file: has changed since the last run;")
    assert compare_identity(changed)[0] == sentence
    other_state = job_in(tmp_path, CODE.replace("max(largest)", "min(largest)"))
    with pytest.raises(ExternalError, match=r"operator\.merge: was .*max\(largest\)"):
        describe_changed_code(other_state)
