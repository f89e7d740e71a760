"""Classes by name: those of a table, and those that other distributions install."""

import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from unskew.config.models.grouping import GROUPING_MODELS
from unskew.config.registry import Registry, RegistryError
from unskew.config.rules.routing import times_are_measured
from unskew.grouping.registry import GROUPINGS, create

SHIPPED = {"decimal": "decimal:Decimal", "fraction": "fractions:Fraction"}
MODULE = """
from decimal import Decimal

class Roman(Decimal):
    pass

class Etruscan:
    pass
"""
ENTRY_POINTS = """[test.numbers]
roman = roman_numbers:Roman
arabic = arabic_numbers:Arabic
decimal = roman_numbers:Roman
broken = roman_numbers:Greek
etruscan = roman_numbers:Etruscan
"""


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry with a package installed that brings further numbers."""
    info = tmp_path / "roman_numbers-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: roman_numbers\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "roman_numbers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "roman_numbers", raising=False)
    return Registry(SHIPPED, "test.numbers", "numbers:Number")


def test_names_are_those_of_the_table_then_the_installed_ones(numbers: Registry) -> None:
    assert numbers.list_shipped_names() == ["decimal", "fraction"]
    assert numbers.list_installed_names() == ["arabic", "broken", "etruscan", "roman"]
    assert numbers.names() == [*SHIPPED, *numbers.list_installed_names()]
    assert "roman_numbers" not in sys.modules


def test_a_class_is_imported_when_it_is_loaded(numbers: Registry) -> None:
    assert numbers.load("roman").__name__ == "Roman"


def test_a_name_of_the_table_cannot_be_replaced(numbers: Registry) -> None:
    assert numbers.load("decimal") is Decimal


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "arabic",
            "arabic_numbers:Arabic cannot be imported: ModuleNotFoundError: No module named \
'arabic_numbers'",
        ),
        (
            "broken",
            "roman_numbers:Greek cannot be imported: AttributeError: module 'roman_numbers' has no \
attribute 'Greek'",
        ),
        ("etruscan", "roman_numbers:Etruscan is no subclass of unskew.Number"),
        ("chinese", "no installed package brings chinese as test.numbers"),
    ],
)
def test_what_cannot_be_loaded_is_named(numbers: Registry, name: str, message: str) -> None:
    with pytest.raises(RegistryError) as raised:
        numbers.load(name)
    assert str(raised.value) == message


@pytest.mark.parametrize("changes", [{}, {"balance": "seconds"}, {"assignment": "records"}])
def test_rows_are_refused_every_grouping_that_wants_times(changes: dict[str, str]) -> None:
    rows: Any = SimpleNamespace(type="rows")
    for name, kind in GROUPINGS.items():
        options = {key: value for key, value in changes.items() if key in kind.Params.model_fields}
        grouping = GROUPING_MODELS[name](type=name, **options)
        wants = create(name, partitions=3, seed=1, **options).wants_feedback
        assert bool(list(times_are_measured(rows, grouping))) is wants, (name, options)
