"""`make papers`: what is kept, what is judged, and what the page says."""

import gzip
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.papers import measured, sources
from benchmarks.papers.__main__ import main as make_papers
from benchmarks.papers.bands import read_bands
from benchmarks.papers.definitions import (
    Exact,
    Extreme,
    Figures,
    Paper,
    Plot,
    Printed,
    Ratio,
    Row,
    Run,
    Value,
    by_figure,
)
from benchmarks.papers.measured import Kept, Store, measure, moved
from benchmarks.papers.page import (
    AGREES,
    EXPLAINED,
    MISSING,
    UNEXPLAINED,
    judge_row,
    lacking_runs,
    write_page,
)
from benchmarks.papers.papers import PAPERS
from benchmarks.papers.plots import draw
from benchmarks.papers.quick import judge
from benchmarks.papers.real_streams import parse_real, with_real
from benchmarks.papers.tables.every_grouping import every_run
from unskew.jobs.__main__ import main

FAST = Run("key", "zipf:z=1,keys=100,records=4000", 4, 2, "--cost-us 10", quick=1000)
SLOW = replace(FAST, grouping="shuffle")
RESULTS: dict[Run, Figures] = {FAST: {"time": 3.0}, SLOW: {"time": 2.0}}
TIMES = Ratio(Value(FAST, "time"), Value(SLOW, "time"))


def row(value: float | None, rule: str = "equal", why: str = "", **more: object) -> Row:
    printed = Printed("as printed", "section 1", value, rule)  # type: ignore[arg-type]
    return Row("fig. 1", "time", printed, TIMES, why, **more)  # type: ignore[arg-type]


def kept(figures: Figures) -> Kept:
    return Kept("digest", figures, 0.1, "a machine", "2026-01-01 00:00")


def test_a_run_gives_the_figures_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    figures = measure(FAST).figures
    words = f"{FAST.command} --json".split()[1:]

    assert main(words) == 0
    assert f'"pairs": {figures["pairs"]:.0f}' in capsys.readouterr().out
    assert not {"routing_seconds", "routing_records_per_second"} & set(figures)


def test_shortened_runs_have_fewer_records_and_streams() -> None:
    assert FAST.shortened().trace == "zipf:z=1,keys=100,records=1000"
    assert replace(FAST, quick=None).shortened() == replace(FAST, quick=None)
    more = "--active 3 --active 2000:4 --speeds 1,2 --streams 100"
    assert replace(FAST, more=more).shortened().more == (
        "--active 3 --active 500:4 --speeds 1,2 --streams 5"
    )


def test_measures_follow_from_figures() -> None:
    worst = Extreme((Value(FAST, "time"), Value(SLOW, "time", 10)))

    assert (TIMES.of(RESULTS), worst.of(RESULTS)) == (1.5, 20.0)
    assert worst.shown(RESULTS) == (SLOW,)
    assert replace(worst, kind="mean").shown(RESULTS) == (FAST, SLOW)


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (row(1.4), AGREES),
        (row(1.2), UNEXPLAINED),
        (row(1.2, why="a reason"), EXPLAINED),
        (row(1.2, why="unexplained: tried this"), UNEXPLAINED),
        (row(1.4, "at most"), UNEXPLAINED),
        (row(1.4, "at least"), AGREES),
    ],
)
def test_a_row_agrees_or_has_a_reason(judged: Row, verdict: str) -> None:
    assert judge_row(judged, RESULTS) == verdict
    assert judge_row(judged, {}) == MISSING


def test_rows_are_in_the_order_of_figures() -> None:
    names = ["fig. 12", "scale-out", "fig. 2", "section I", "table 3", "fig. 2"]
    rows = tuple(replace(row(1.0), figure=name, what=str(i)) for i, name in enumerate(names))

    ordered = by_figure(Paper("9", "A paper", "", rows)).rows

    assert [each.figure for each in ordered] == [
        "section I", "table 3", "fig. 2", "fig. 2", "fig. 12", "scale-out",
    ]  # fmt: skip
    assert [each.what for each in ordered] == ["3", "4", "2", "5", "0", "1"]


def test_a_figure_outside_its_band_fails() -> None:
    paper = Paper("9", "A paper", "", (row(1.5, band=(1.0, 2.0)), row(1.5, band=(1.6, 2.0))))
    said: list[str] = []

    problems = judge([paper], RESULTS, said.append)

    assert [line.split(":")[0] for line in said] == ["ok", "OUTSIDE"]
    assert len(problems) == 1
    assert FAST.shortened().command in problems[0]


def test_every_band_is_of_one_row() -> None:
    rows = [(paper.key, each.figure, each.what) for paper in PAPERS for each in paper.rows]

    assert [rows.count(name) for name in read_bands()] == [1 for _ in read_bands()]


BROKEN = (
    ("001", "D-Choices, n = 20: worst imbalance", "d_choices", "d_choices:choices=2"),
    ("000", "W-Choices' rule, 128 workers", "fish", "fish:rule=w_choices"),
    ("000", "without the ring over with it, z = 1, a worker more", "fish:placement=ring",
     "fish:placement=modulo"),
    ("004", "speed-up, Zipf-1.0, synchronised by reports", "posg:tolerance=1,synchronise=reports",
     "posg:tolerance=0"),
)  # fmt: skip
"""A grouping that has lost what makes it, in the place of the whole one."""


@pytest.mark.parametrize(("key", "what", "whole", "broken"), BROKEN)
def test_a_broken_grouping_leaves_its_band(key: str, what: str, whole: str, broken: str) -> None:
    rows = [each for paper in PAPERS if paper.key == key for each in paper.rows]
    (judged,) = (each for each in rows if what in each.what and each.band is not None)

    results = {
        run: measure(
            replace(run, grouping=broken if run.grouping == whole else run.grouping).shortened()
        ).by_name
        for run in dict.fromkeys(judged.ours.runs)
    }

    assert len(judge([Paper(key, "A paper", "", (judged,))], results, lambda line: None)) == 1


def test_what_is_kept_is_measured_again_when_its_sources_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "kept.json")
    store.keep(FAST, measure(FAST))

    again = Store(tmp_path / "kept.json")
    assert again.is_fresh(FAST)
    assert not again.is_fresh(SLOW)
    monkeypatch.setattr(measured, "sources_of", lambda name, trace: "another")
    assert not again.is_fresh(FAST)


def test_a_run_that_lacks_a_figure_is_measured_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept.json")
    store.keep(FAST, kept({"time": 1.0}))
    asked = Row("fig. 1", "pairs", Printed("7", "section 1"), Value(FAST, "pairs"))

    assert lacking_runs([Paper("9", "A paper", "", (asked,))], store) == {FAST}
    store.keep(FAST, kept({"time": 1.0, "pairs": 7.0}))
    assert lacking_runs([Paper("9", "A paper", "", (asked,))], store) == set()


def test_figures_that_another_measurement_changed_are_said() -> None:
    before, after = kept({"time": 1.0, "pairs": 3.0}), kept({"time": 1.0, "pairs": 4.0})

    assert list(moved(before, after)) == ["pairs 3 -> 4"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--only", "TYPO"], "--only TYPO: matches none of '001', '000'"),
        (["--real", "003.ticker=file:/no/such"], "trace: /no/such: no such file"),
        (["--real", "003.ticker=csv:path=/no/such,title=a"], "trace: /no/such: No such file"),
    ],
)
def test_what_cannot_be_measured_is_an_error_of_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        make_papers([*words, "--out", str(tmp_path)])

    assert ended.value.code == 2
    assert problem in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_in_no_minutes_nothing_is_measured(tmp_path: Path) -> None:
    results = tmp_path / "kept.json"
    words = ["--only", "004 fig. 8", "--minutes", "0", "--jobs", "1"]

    make_papers([*words, "--results", str(results), "--out", str(tmp_path)])

    assert not results.exists()
    assert (tmp_path / "papers.md").exists()


WORDS = [f"k{i % 7}" for i in range(300)]
DUMPS = {
    "file:{}": "\n".join(WORDS),
    "text:path={}": " ".join(WORDS) + "\n",
    "text:path={},starts=Q": "".join(f"P\thttp\nQ\t{word}\n" for word in WORDS),
    "csv:path={},title=symbol": "time,symbol\n" + "".join(f"1,{word}\n" for word in WORDS),
    "csv:path={},column=3,separator=space": "".join(f"1 2 {word}\n" for word in WORDS),
    "json-lines:path={},field=key": "".join(f'{{"n": 1, "key": "{word}"}}\n' for word in WORDS),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("spec", DUMPS)
def test_real_files_of_every_format_are_measured(tmp_path: Path, spec: str, packed: bool) -> None:
    path, content = tmp_path / "dump", DUMPS[spec].encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    chosen = f"003.ticker={spec.format(path)}"
    words = ["--real", chosen, "--only", "003 fig. 9", "--jobs", "1", "--out", str(tmp_path)]

    make_papers(words)

    figures = json.loads((tmp_path / "papers.json").read_text())
    assert [each["figures"]["distinct_keys"] for each in figures.values()] == [7, 7]
    assert all(str(path) in command for command in figures)
    assert spec.format(path) in (tmp_path / "papers.md").read_text()


def test_a_digest_changes_with_the_file_that_is_read(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("x\n")
    second.write_text("y\n")
    digests = {sources.sources_of("key", f"text:path={path}") for path in (first, second)}

    assert len(digests | {sources.sources_of("key", f"file:{first}")}) == 2
    assert sources.sources_of("key", FAST.trace) == sources.digest_of("key")


def test_a_digest_is_of_one_grouping_and_not_of_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sources.digest_of("key") != sources.digest_of("shuffle")
    plain, noted = tmp_path / "a.py", tmp_path / "b.py"
    plain.write_text("x = 1\n")
    noted.write_text('"""Text."""\n# A comment.\nx = 1\n')
    monkeypatch.setattr(sources, "_path", {"a": plain, "b": noted}.get)
    assert sources._parse("a") == sources._parse("b")


def test_the_page_says_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    other = replace(FAST, partitions=8)
    lines = {"key": ((1.0, Value(FAST, "time")), (2.0, Value(SLOW, "time")))}
    missing = Row("fig. 2", "later", Printed("7", "section 2", 7.0), Value(other, "time"))
    agreeing = (row(1.4, why="another reason"), row(1.4, why="by construction: fitted"))
    paper = Paper(
        "9",
        "A paper",
        "One seed.",
        (row(1.2), missing, *agreeing),
        (Plot("p", "P", "x", "y", lines),),
    )
    store = Store(tmp_path / "kept.json")
    for run, figures in RESULTS.items():
        store.keep(run, kept(figures))

    write_page([paper], store, tmp_path)

    page = (tmp_path / "papers.md").read_text()
    assert "| 1 | fig. 1 | time | as printed (section 1) | 1.5 | 1.25 | unexplained |" in page
    assert "| 2 | fig. 2 | later | 7 (section 2) |  |  |  |" in page
    assert "| 3 | fig. 1 | time | as printed (section 1) | 1.5 | 1.07 |  |" in page
    assert "| 1.5 | 1.07 | by construction: fitted |" in page
    assert "| [9](#9-a-paper) A paper | 4 | 2 | 0 | 1 | 1 |" in page
    assert f"unskew simulate --grouping key --grouping shuffle {FAST.setting}  # 1" in page
    assert f"unskew simulate --grouping key --grouping shuffle {FAST.setting}  # p" in page
    ET.fromstring((tmp_path / "papers" / "p.svg").read_text())  # noqa: S314


@pytest.mark.parametrize("values", [(1.0001, 1.0), (0.0, 0.0), (3.0, 40.0), (1e-7, 0.3)])
def test_ticks_of_a_plot_differ(values: tuple[float, float]) -> None:
    points = tuple((float(x), Exact(lambda value=value: value)) for x, value in enumerate(values))
    plot = Plot("p", "P", "x", "y", {"line": points})

    labels = re.findall(r'text-anchor="end" fill="[^"]+">([^<]+)<', draw(plot, {}))

    assert len(labels) == len(set(labels)) >= 2


def test_lists_that_a_run_keeps_are_figures_by_number(tmp_path: Path) -> None:
    run = replace(FAST, more="--cost-us 10 --points 4", series=("over_time.records", "loads"))
    store = Store(tmp_path / "kept.json")
    store.keep(run, measure(run))
    store.keep(replace(run, partitions=8, series=()), measure(replace(run, series=())))

    again = Store(tmp_path / "kept.json")
    figures = again.get(run).by_name  # type: ignore[union-attr]

    assert [figures[f"over_time.records.{i}"] for i in range(4)] == [1000, 2000, 3000, 4000]
    assert sum(figures[f"loads.{i}"] for i in range(4)) == 4000
    assert again.is_fresh(run)
    assert not again.is_fresh(replace(run, partitions=8))


def test_a_command_always_keeps_the_same_lists() -> None:
    series: dict[str, tuple[str, ...]] = {}
    for paper in PAPERS:
        for run in paper.runs:
            assert series.setdefault(run.command, run.series) == run.series


def test_a_real_stream_takes_the_place_of_what_stands_in_for_it() -> None:
    chosen = parse_real(PAPERS, ["001.WP=file:pages.txt", "003.election=text:path=words.txt"])

    papers = with_real(PAPERS, chosen)

    assert [paper.key for paper in papers] == ["001", "003"]
    for paper in papers:
        traces = {run.trace for run in paper.runs}
        before = {run.trace for each in PAPERS if each.key == paper.key for run in each.runs}
        assert len(before - traces) == len(traces - before) == 1
    with pytest.raises(ValueError, match=r"--real 001\.XX: one of 001\.WP"):
        parse_real(PAPERS, ["001.XX=file:a", "001.WP"])


def test_what_stands_in_for_real_streams_is_measured() -> None:
    for paper in PAPERS:
        traces = {run.trace.partition(",records=")[0] for run in paper.runs}
        for stream in paper.real:
            assert stream.stand_in.partition(",records=")[0] in traces


def test_every_run_of_the_tables_is_a_command_that_is_understood() -> None:
    runs = dict.fromkeys([*every_run(), *(run for paper in PAPERS for run in paper.runs)])
    for run in runs:
        # A law of millions of keys takes its time to prepare, and changes no option.
        trace = re.sub(r"(keys|records)=\d{4,}", r"\1=1000", run.trace)
        fewer = trace if "keys=" in trace or "-like" not in trace else f"{trace},keys=1000"
        measured.read_run(replace(run, trace=fewer))


def test_the_page_is_that_of_the_kept_runs(root: Path, tmp_path: Path) -> None:
    write_page(PAPERS, Store(root / "benchmarks" / "results" / "papers.json"), tmp_path)

    def without_state(text: str) -> list[str]:
        return [line for line in text.splitlines() if "have changed since" not in line]

    written = without_state((tmp_path / "papers.md").read_text())
    assert without_state((root / "docs" / "papers.md").read_text()) == written
