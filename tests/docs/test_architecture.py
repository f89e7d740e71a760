"""docs/ARCHITECTURE.md says what the code does: the rooms, and the way of one record."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from docs.reference.counts import files_for, files_naming, main
from docs.reference.record_way import (
    MARK,
    PAGE,
    first_lines,
    measure,
    read_way,
    read_whole,
    trace,
    turns_back,
    written,
)
from docs.reference.trace import Call, read_calls
from docs.reference.write_or_check import section
from unskew.jobs.operators.vwap import Vwap
from unskew.jobs.operators.word_count import WordCount

FILES_MAX = 22
TURNS_BACK_MAX = 8
FOLDER_MAX = 14
TESTS_FOLDER_MAX = 16


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text()


def test_every_function_on_the_way_exists(page: str) -> None:
    calls = [call for calls in read_way(page).values() for call in calls]
    assert calls
    assert [call for call in calls if call.function not in first_lines(call.file)] == []


def test_the_way_is_described_as_the_code_describes_it(page: str) -> None:
    assert section(page, MARK) == written(read_way(page), read_whole(page))


def test_what_takes_more_files_than_its_family_is_named() -> None:
    assert files_for({"word_count": WordCount, "vwap": Vwap, "int": int}).startswith("4; `int`: ")


def test_a_function_that_is_not_there_is_missed() -> None:
    assert "Pipeline.build_results" in first_lines("jobs/query/pipeline.py")
    assert "Pipeline.gone" not in first_lines("jobs/query/pipeline.py")


def test_the_way_is_short(page: str) -> None:
    way = measure(read_way(page).values())
    assert way.files <= FILES_MAX
    assert way.turns_back <= TURNS_BACK_MAX


@pytest.mark.parametrize(
    ("stretches", "turns"), [([""], 0), (["abab"], 0), (["ab", "c"], 0), (["ab", "ca", "ba"], 3)]
)
def test_a_turn_back_is_a_file_that_an_earlier_stretch_had(
    stretches: list[str], turns: int
) -> None:
    assert turns_back([Call(file, "f") for file in files] for files in stretches) == turns


def test_what_is_left_out_is_counted_apart(tmp_path: Path) -> None:
    lines = ["20\tplan\ta.py\tf\t0", "10\tplan\tb.py\tg\t1", "30\troute\tb.py\tg\t0"]
    (tmp_path / "1.trace").write_text("\n".join(lines))

    assert read_calls(tmp_path) == {"plan": [Call("a.py", "f")], "route": [Call("b.py", "g")]}
    whole = read_calls(tmp_path, all_calls=True)
    assert whole["plan"] == [Call("b.py", "g"), Call("a.py", "f")]
    assert measure(whole.values()) == (2, 1)


@pytest.mark.slow
@pytest.mark.every_run
@pytest.mark.spark
@pytest.mark.e2e
def test_a_run_enters_what_the_page_lists(page: str) -> None:
    assert section(page, MARK) == written(*trace())


def test_the_counts_are_fresh() -> None:
    assert main(["--check"]) == 0


def test_a_class_is_found_by_name_and_in_a_table_of_texts() -> None:
    files = files_naming("WordCount")
    assert files == ["config/specs.py", "jobs/operators/word_count.py"]


def count_modules(root: Path, *folders: str) -> Counter[str]:
    """How many modules are in each folder below these, without its `__init__`."""
    paths = [path for folder in folders for path in (root / folder).rglob("*.py")]
    return Counter(
        str(path.parent.relative_to(root)) for path in paths if path.name != "__init__.py"
    )


def test_no_folder_has_many_more_than_a_dozen_modules(root: Path) -> None:
    sizes = count_modules(root, "config", "dashboards", "deploy", "docs", "grouping", "jobs")
    assert {folder: size for folder, size in sizes.items() if size > FOLDER_MAX} == {}
    sizes = count_modules(root, "benchmarks", "tests")
    assert {folder: size for folder, size in sizes.items() if size > TESTS_FOLDER_MAX} == {}


def test_every_room_has_its_line_and_its_layer(root: Path, page: str) -> None:
    (layers,) = [
        " ".join(contract["layers"])
        for contract in tomllib.loads((root / "pyproject.toml").read_text())["tool"][
            "importlinter"
        ]["contracts"]
        if contract["type"] == "layers"
    ]
    rooms = [folder.parent.name for folder in (root / "jobs").glob("*/__init__.py")]
    assert [room for room in rooms if f"unskew.jobs.{room}" not in layers.split()] == []
    assert [room for room in rooms if f"| `jobs/{room}/` |" not in page] == []
