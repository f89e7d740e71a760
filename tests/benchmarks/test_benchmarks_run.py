"""The benchmark programs run, at sizes that show nothing but that they do, and print tables."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import agreement, balance, balance_page, fish_findings, kernels, posg_tables
from benchmarks.balance import Cell, Subject, imbalance_max
from benchmarks.kernels import Row
from benchmarks.level_batches import least_expected
from benchmarks.simulated import SMALL_GROUPINGS, Options
from benchmarks.tables import Table, show, verdict
from unskew.grouping.registry import GROUPINGS

TINY = "--records 2000 --seeds 1 --zipf 1.4"


def call(program: Callable[[Sequence[str]], None], arguments: str) -> None:
    program(arguments.split())


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def test_heads_have_a_row_for_each_relative(capsys: pytest.CaptureFixture[str]) -> None:
    call(balance.main, f"heads {TINY} --partitions 10")

    header, _, *rows = rows_of(capsys)
    assert header[-1] == "meets"
    assert [row[3] for row in rows] == [Subject(*subject).label for subject in balance.SUBJECTS]
    assert all(len(row) == len(header) for row in rows)


def test_fish_is_judged_and_its_rivals_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    call(balance.main, f"fish {TINY} --partitions 64")

    rows = rows_of(capsys)[2:]
    assert [row[1] for row in rows] == ["10"] * 6 + ["1"] * 6
    verdicts = {row[4]: row[-1] for row in rows}
    assert verdicts.pop("fish") in ("yes", "no: time")
    assert set(verdicts) == {"shuffle", "key", "partial_key", "d_choices", "w_choices"}
    assert set(verdicts.values()) == {"-"}


def test_every_grouping_meets_three_numbers_of_sources(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call(balance.main, f"sources {TINY} --partitions 20")

    rows = rows_of(capsys)[2:]
    assert [(row[3], row[4]) for row in rows] == [
        (name, sources) for name in GROUPINGS for sources in ("1", "5", "48")
    ]


def test_level_is_followed_from_batch_to_batch(capsys: pytest.CaptureFixture[str]) -> None:
    call(balance.main, f"level-later {TINY} --partitions 10")

    rows = rows_of(capsys)[2:]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("zipf", "1.4", sources) for sources in ("1", "5", "48")
    ]
    assert all(float(row[5]) >= float(row[8]) or float(row[6]) > 1.02 for row in rows)


def test_small_batches_are_judged_where_they_are_levelled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call(balance.main, f"small {TINY}")

    verdicts = {row[2]: row[-1] for row in rows_of(capsys)[2:]}
    assert {name for name, meets in verdicts.items() if meets == "yes"} == {
        "level",
        "w_choices",
        "d_choices",
    }
    assert set(verdicts) == set(SMALL_GROUPINGS)


def test_reading_what_sources_agree_on_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    call(agreement.main, "--sources 3 --records 2000 --repeat 1")

    header, _, *rows = rows_of(capsys)
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (name, z, "3") for name in ("level", "whole") for z in ("0.0", "0.8")
    ]
    assert header[3:8] == ["state kB", "agreed kB", "states ms", "first ms", "other ms"]
    assert all(float(figure) > 0 for row in rows for figure in row[3:8])


def test_rows_are_written_as_json_too(tmp_path: Path) -> None:
    call(balance.main, f"level {TINY} --partitions 10 64 --json {tmp_path}/rows.json")

    written = json.loads((tmp_path / "rows.json").read_text())
    assert written["seeds"] == 1
    assert list(written["tables"]) == ["level"]
    # Zipf's law on 10 partitions, and eight other traces on 10 and 64, with three sources each.
    assert len(written["tables"]["level"]) == 3 + 8 * 2 * 3
    alone = [row for row in written["tables"]["level"] if row["sources"] == 1]
    assert all(row["excess"] < 1 for row in alone)


def test_kept_rows_are_not_measured_again_until_their_code_changes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.jsonl"
    words = f"heads {TINY} --partitions 10 --grouping w_choices --kept {kept}"
    call(balance.main, words)
    first, line = rows_of(capsys), json.loads(kept.read_text())
    assert line[0].startswith("w_choices dealt partitions=10 zipf=1.4")

    line[2]["pairs"] = 4321
    kept.write_text(json.dumps(line) + "\n")
    call(balance.main, words)
    assert rows_of(capsys)[2][6] == "4321"

    line[1] = "other code"
    kept.write_text(json.dumps(line) + "\n")
    call(balance.main, words)
    assert rows_of(capsys) == first
    assert len(kept.read_text().splitlines()) == 1


def test_the_page_has_every_table_and_says_what_misses() -> None:
    options = Options(1, (2000,), None, (1.4,), (20, 64))

    text = balance_page.page(options, "What the misses say: nothing here.")

    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(headings) == len(balance.TABLES)
    assert all(heading.endswith(", one seed") for heading in headings)
    missed = sum(line.startswith("|") and "| no: " in line for line in text.splitlines())
    cells_of = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    summaries = [cells for cells in cells_of if f"## {cells[0].strip('| ')}" in headings]
    assert sum(int(cells[2]) for cells in summaries) == missed > 0
    assert "What the misses say: nothing here." in text


def test_findings_of_fish_have_a_row_a_grouping(capsys: pytest.CaptureFixture[str]) -> None:
    call(fish_findings.main, "--records 2000 --seeds 1 --stream one-change all-the-time")

    rows = rows_of(capsys)[2:]
    assert [row[2] for row in rows] == [*fish_findings.GROUPINGS] * 3 * 2


def test_theory_has_less_above_the_mean_the_more_pairs_there_are() -> None:
    figures = [least_expected(extra, 1_000_000, 0.3, 100, 48) for extra in (0.0, 0.05, 0.2, 1.0)]
    assert figures == sorted(figures, reverse=True)
    assert figures[0] == pytest.approx(1.025, abs=0.0005)


def test_kernels_print_a_line_a_grouping(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "PARTITIONS", (3, 30))
    call(kernels.main, "--records 1000 --rounds 1 --grouping partial_key")

    machine, _, header, line = capsys.readouterr().out.splitlines()
    assert "Python" in machine
    assert header.split()[0] == "grouping"
    assert line.split()[0] == "partial_key"


def test_kernels_of_several_sources_have_rows_by_trace_and_agree_where_a_grouping_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = "--grouping level --grouping shuffle"
    call(kernels.main, f"--sources 3 --records 3000 --rounds 1 {names}")

    header, _, *rows = rows_of(capsys)
    assert header[:3] == ["grouping", "trace", "M/s"]
    assert [(row[0], row[1], row[4] == "-") for row in rows] == [
        ("level", "zipf 1.4", False),
        ("shuffle", "zipf 1.4", True),
        ("level", "uniform", False),
        ("shuffle", "uniform", True),
    ]


def test_of_repeated_rows_the_best_is_kept_with_the_best_baseline() -> None:
    monday = Row("fish", {100: 10e6, 1000: 8e6}, {100: 40.0, 1000: 50.0}, 0.8, {1000: 7}, 0.9)
    tuesday = Row("fish", {100: 20e6, 1000: 5e6}, {100: 30.0, 1000: 60.0}, 0.25, {1000: 7}, 0.5)

    assert kernels.best([monday, tuesday]) == Row(
        "fish", {100: 20e6, 1000: 8e6}, {100: 30.0, 1000: 50.0}, 0.4, {1000: 7}, 0.5
    )


def test_posg_tables_print_the_paper_beside_the_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call(posg_tables.main, "--seeds 1 --records 500 --table instances")

    header, _, *rows = rows_of(capsys)
    assert header[:3] == ["table", "value", "paper"]
    assert [row[1] for row in rows] == ["1", "2", "3", "5", "10"]


def test_a_row_that_misses_stays_and_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[dict[str, object]]:
        yield {"n": 5, "share": 0.5, "meets": verdict({"time": True, "pairs": None})}
        yield {"n": 10, "share": None, "meets": verdict({"time": False, "pairs": False})}
        yield {"n": 20, "share": 0.1, "meets": verdict({"time": None})}

    show(Table("title", "What it must show.", {"n": "3", "share": "6.2f"}, rows()))

    assert capsys.readouterr().out == (
        "## title\n"
        "\n"
        "What it must show.\n"
        "\n"
        "|   n |  share | meets    |\n"
        "| --: | -----: | -------- |\n"
        "|   5 |   0.50 | yes      |\n"
        "|  10 |      - | no: time, pairs |\n"
        "|  20 |   0.10 | -        |\n"
        "\n"
        "2 of 3 rows have a line to meet; 1 miss it.\n"
        "\n"
    )


def test_lines_are_those_that_were_promised() -> None:
    raised = Subject("d_choices", {"raise_choices": True})
    assert imbalance_max(Subject("w_choices", {}), Cell(5, 1.2)) == 1e-5
    assert imbalance_max(Subject("d_choices", {}), Cell(50, 1.2)) == 5e-4
    assert imbalance_max(Subject("d_choices", {}), Cell(5, 1.2)) == 1e-2
    assert imbalance_max(Subject("d_choices", {}), Cell(10, 1.2)) == 3e-3
    assert imbalance_max(raised, Cell(10, 1.2)) == 5e-4
    assert imbalance_max(Subject("partial_key", {}), Cell(5, 1.2)) is None
