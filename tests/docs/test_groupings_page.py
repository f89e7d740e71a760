"""docs/groupings.md: every grouping, under its name in YAML, with its options and figures."""

import re
from pathlib import Path

import pytest

from docs.reference.groupings import PAGE, balance, kernel_rates, page
from docs.reference.write_or_check import write_or_check
from unskew.config.models.grouping import GROUPING_MODELS
from unskew.grouping.registry import GROUPINGS


def test_the_page_is_fresh_and_its_headings_are_the_types_of_yaml() -> None:
    text = PAGE.read_text()
    assert text == page()
    headings = re.findall(r"^## ([a-z_]+)$", text, re.MULTILINE)
    assert headings == list(GROUPING_MODELS)


@pytest.mark.parametrize("name", GROUPINGS)
def test_a_grouping_has_its_options_reference_and_figures(name: str) -> None:
    _, _, section = PAGE.read_text().partition(f"\n## {name}\n")
    section = re.split(r"\n## ", section)[0]
    assert "Reference: " in section
    for option, field in GROUPINGS[name].Params.model_fields.items():
        assert f"| `{option}` |" in section
        assert " ".join((field.description or "?").split()) in section
    assert kernel_rates()[name]
    assert set(balance(name)) == {"0.8", "1.4", "2.0"}


def test_a_stale_page_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    new, newer = {page: "new"}, {page: "newer"}
    assert write_or_check(["--check"], lambda: new, "python -m unskew.jobs.x") == 1
    assert write_or_check([], lambda: new, "python -m unskew.jobs.x") == 0
    assert write_or_check(["--check"], lambda: new, "python -m unskew.jobs.x") == 0
    assert write_or_check(["--check"], lambda: newer, "python -m unskew.jobs.x") == 1
    assert write_or_check(["--nonsense"], lambda: new, "python -m unskew.jobs.x") == 2
    assert "stale; run python -m unskew.jobs.x" in capsys.readouterr().err
