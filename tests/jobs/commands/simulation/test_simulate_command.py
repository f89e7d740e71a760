"""`unskew simulate` and `unskew compare` as a user meets them: output, exit codes, problems."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from unskew.grouping.registry import GROUPINGS
from unskew.jobs.__main__ import main

TRACE = "zipf:z=1.4,keys=10000,records=20000,seed=1"


def unskew(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_contract_call_prints_one_object_a_grouping(capsys) -> None:
    code, out, err = unskew(
        capsys,
        *("simulate", "--grouping", "partial_key", "--grouping", "key", "--trace", TRACE),
        *("--partitions", "50", "--sources", "5", "--json"),
    )

    first, second = json.loads(out)
    assert (code, err) == (0, "")
    assert [first["grouping"], second["grouping"]] == ["partial_key", "key"]
    assert (first["partitions"], first["sources"], first["records"]) == (50, 5, 20_000)
    assert sum(first["loads"]) == 20_000
    assert len(first["loads"]) == 50
    assert first["pairs"] == round(first["replication"] * first["distinct_keys"])
    assert first["routing_records_per_second"] > 0
    assert "execution_seconds" not in first


def test_options_follow_a_colon(capsys) -> None:
    code, out, _ = unskew(
        capsys,
        *("simulate", "--grouping", "d_choices:epsilon=0.0001", "--trace", TRACE),
        *("--partitions", "10", "--cost-us", "50", "--arrival-per-second", "1000", "--json"),
    )

    (report,) = json.loads(out)
    assert code == 0
    assert (report["grouping"], report["options"]) == ("d_choices", {"epsilon": 0.0001})
    assert report["execution_seconds"] == pytest.approx(20.0, rel=0.01)
    assert 0 < report["latency_p50_ms"] <= report["latency_p99_ms"]


def test_keys_come_from_a_file(capsys, tmp_path) -> None:
    path = tmp_path / "keys,with:odd=name.txt"
    path.write_text("a\nb\na\n")

    code, out, _ = unskew(
        capsys,
        *("simulate", "--grouping", "key", "--trace", f"file:{path}"),
        *("--partitions", "3", "--json"),
    )

    (report,) = json.loads(out)
    assert (code, report["records"], report["distinct_keys"]) == (0, 3, 2)


def test_table_has_a_row_a_grouping(capsys) -> None:
    code, out, _ = unskew(
        capsys,
        *("simulate", "--grouping", "key", "--grouping", "shuffle", "--trace", TRACE),
        *("--partitions", "5", "--cost-us", "10", "--batch-records", "5000"),
    )

    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert out.startswith(f"{TRACE}: 20,000 records, ")
    assert [row[0] for row in rows if row and row[0] in GROUPINGS] == ["key", "shuffle"]


def test_figures_are_whole_on_a_narrow_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setenv("TERM", "dumb")  # 80 columns, no colours
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    code, out, _ = unskew(
        capsys,
        *("simulate", "--grouping", "shuffle", "--trace", "uniform:records=20000"),
        *("--partitions", "4", "--cost-us", "100", "--batch-records", "10000"),
    )

    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("grouping") > 1
    for figure in ("max/mean", "1.000", "replication", "execution s", "0.5", "routed M/s"):
        assert f" {figure} " in out


def test_compare_ranks_all_groupings_and_gives_a_verdict(capsys) -> None:
    code, out, _ = unskew(
        capsys, "compare", "--trace", "zipf:z=2.0,records=20000", "--partitions", "10", "--json"
    )

    reports = json.loads(out)
    assert code == 0
    assert {row["grouping"] for row in reports["groupings"]} == set(GROUPINGS)
    assert reports["groupings"][0]["batches"]["count"] == 10
    assert reports["verdict"].startswith(f"Use {reports['groupings'][0]['grouping']}: ")


def test_compare_says_when_nothing_is_needed(capsys) -> None:
    _, out, _ = unskew(
        capsys,
        *("compare", "--trace", "uniform:keys=1000000,records=100000"),
        *("--partitions", "2", "--batch-records", "100000"),
    )

    assert out.splitlines()[-1].startswith("You do not need Unskew: ")


def test_plot_is_written(capsys, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "figures.png"

    code, _, _ = unskew(
        capsys,
        *("simulate", "--grouping", "key", "--trace", TRACE, "--partitions", "5"),
        *("--cost-us", "10", "--plot", str(path)),
    )

    assert code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_missing_matplotlib_is_said_before_the_work(capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    code, out, err = unskew(
        capsys,
        *("simulate", "--grouping", "key", "--trace", TRACE, "--partitions", "5"),
        *("--plot", "figures.png"),
    )

    assert (code, out) == (2, "")
    assert err == "--plot: needs matplotlib: pip install 'unskew[plot]'\n"


GOOD = {"--grouping": "key", "--trace": TRACE, "--partitions": "4"}


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"--grouping": "kye"}, 'grouping: unknown "kye"; did you mean "key"?'),
        (
            {"--grouping": "key:z=1"},
            "grouping key.z: unknown option; remove it: nothing can be set here",
        ),
        ({"--grouping": "key:z"}, 'grouping key: option=value expected (got "z")'),
        ({"--trace": "zpf"}, 'trace: unknown "zpf"; did you mean "zipf"?'),
        ({"--trace": "zipf:z=-1"}, "trace zipf.z: at least 0 (got -1)"),
        ({"--trace": "file:/no/such"}, "trace: /no/such: no such file"),
        ({"--partitions": "0"}, "--partitions: at least 1 (got 0)"),
        ({"--partitions": "1000000"}, "--partitions: at most 1000 (got 1000000)"),
        ({"--partitions": "many"}, '--partitions: a whole number (got "many")'),
        ({"--partitions": "2.5"}, "--partitions: a whole number (got 2.5)"),
        ({"--sources": "65"}, "--sources: at most 64 (got 65)"),
        ({"--seed": "-1"}, "--seed: at least 0 (got -1)"),
        ({"--cost-us": ".nan"}, "--cost-us: a finite number (got nan)"),
        ({"--cost-us": "0"}, "--cost-us: more than 0 (got 0)"),
        ({"--arrival-per-second": "-5"}, "--arrival-per-second: at least 0.01"),
        ({"--speeds": "1,0"}, "--speeds: more than 0 (got 0)"),
        ({"--speeds": "x:1"}, '--speeds: a whole number (got "x")'),
        ({"--speeds": "5:1"}, "--speeds: the first must hold from record 0 on"),
        (
            {"--batch-records": "5", "--batch-seconds": "5"},
            "--batch-records and --batch-seconds: give one of them",
        ),
        (
            {"--batch-records": "5", "--feedback-seconds": "5"},
            "--feedback-seconds: only without micro-batches, which report at their ends",
        ),
        (
            {"--batch-seconds": "0.01", "--arrival-per-second": "10"},
            "batch_seconds: less than one record at 10 records a second",
        ),
        ({"--plot": "figures.svg"}, '--plot: a file name that ends with .png (got "figures.svg")'),
        ({"--plot": "/no/such/x.png"}, "--plot: /no/such: no such folder"),
    ],
)
def test_wrong_use_is_one_line(capsys, wrong: dict[str, str], problem: str) -> None:
    words = [word for pair in (GOOD | wrong).items() for word in pair]

    code, out, err = unskew(capsys, "simulate", *words)

    assert (code, out) == (2, "")
    assert err.startswith(problem)
    assert err.count("\n") == 1


def test_all_problems_come_at_once(capsys) -> None:
    code, _, err = unskew(
        capsys,
        *("simulate", "--grouping", "kye", "--trace", "zipf:z=-1,keys=0", "--partitions", "0"),
        *("--sources", "x", "--plot", "x"),
    )

    assert code == 2
    assert [line.split(":")[0] for line in err.splitlines()] == [
        "grouping",
        "trace zipf.z",
        "trace zipf.keys",
        "--partitions",
        "--sources",
        "--plot",
    ]


def test_everything_that_is_missing_is_named(capsys) -> None:
    code, _, err = unskew(capsys, "simulate")

    assert code == 2
    assert err.splitlines() == [
        "--grouping: missing",
        "--trace: missing",
        "--partitions: missing",
    ]


def test_progress_is_shown_on_a_terminal_only(root: Path) -> None:
    words = [sys.executable, "-m", "unskew", "simulate", "--json"]
    words += [word for pair in GOOD.items() for word in pair]
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}

    done = subprocess.run(
        words, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=follower, check=True
    )

    os.close(follower)
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert json.loads(done.stdout)[0]["grouping"] == "key"
    assert "max/mean" in shown
