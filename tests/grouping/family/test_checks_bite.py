"""A check that cannot fail is decoration: each one rejects a grouping that breaks its promise."""

import sys
from pathlib import Path

import pytest

from tests.grouping.family import doubles_of_options
from tests.grouping.family.checks import CHECKS
from tests.grouping.family.checks_of_options import the_docstring_is_whole
from tests.grouping.family.doubles import DOUBLES
from tests.grouping.family.members import Member
from tests.grouping.family.processes import PROCESS_CHECKS
from unskew.grouping.registry import GROUPINGS

IN_PROCESS = [case for case in DOUBLES if case[0] in CHECKS]


@pytest.mark.parametrize("check", [*CHECKS, *PROCESS_CHECKS])
def test_check_has_a_double(check: str) -> None:
    assert [double for name, double, _ in DOUBLES if name == check] != []


def test_every_double_is_of_a_check() -> None:
    assert {name for name, _, _ in DOUBLES} - {*CHECKS, *PROCESS_CHECKS} == set()


@pytest.mark.parametrize(
    ("check", "double", "says"),
    IN_PROCESS,
    ids=[f"{check}-{double.kind.__name__}" for check, double, _ in IN_PROCESS],
)
def test_check_rejects_its_double(
    check: str, double: Member, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GROUPINGS, double.kind.name, double.kind)

    with pytest.raises((AssertionError, ValueError), match=says):
        CHECKS[check](double)


def test_check_of_docstrings_takes_the_whole_one_that_its_doubles_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = doubles_of_options.NoTable
    monkeypatch.setattr(sys.modules[kind.__module__], "__doc__", doubles_of_options.GOOD)

    the_docstring_is_whole(Member(kind))


def test_check_of_hash_seeds_rejects_its_double(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="differs by hash seed"):
        PROCESS_CHECKS["hash_seeds_change_nothing"](
            "tests.grouping.family.doubles:HASHING", tmp_path
        )


@pytest.mark.slow
def test_check_of_indices_rejects_its_double(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="IndexError"):
        PROCESS_CHECKS["kernels_stay_within_their_arrays"](
            "tests.grouping.family.doubles:BEYOND", tmp_path
        )
