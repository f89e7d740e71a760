"""`unskew compare` with a cost: predictions, the sentence, and what is said of useless records."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from unskew.grouping.simulation.batch_cost import Constants, Parts, Prediction
from unskew.grouping.simulation.loads import HASHED, LOCAL, WAYS, Work
from unskew.jobs.__main__ import main
from unskew.jobs.commands.prediction.advice import advise
from unskew.jobs.local.machine_constants import Calibration, write_calibration
from unskew.jobs.observe.page.palette import write_css

ASKED = ("--partitions", "4", "--cost", "1ms", "--setup", "20ms")


def predictions(pairs: dict[str, float] | None = None, **seconds: float) -> list[Prediction]:
    return [
        Prediction(way, 1000.0, Parts(0, 0, 0, 0, value, 0), 1.0, (pairs or {}).get(way, 100.0))
        for way, value in seconds.items()
    ]


@pytest.fixture(autouse=True)
def _no_calibration(tmp_path_factory, monkeypatch) -> None:
    """Constants are the defaults, whatever was calibrated on this machine; kernels stay cached."""
    folder = tmp_path_factory.mktemp("calibration")
    target = "unskew.jobs.commands.prediction.options.find_calibration_file"
    monkeypatch.setattr(target, lambda: folder / "machine.json")


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """A key that has half of the records, and many others."""
    names = np.random.default_rng(1).integers(0, 500, 4000)
    names[::2] = 0
    file = tmp_path / "keys.txt"
    file.write_text("".join(f"user-{name}\n" for name in names))
    return file


@pytest.mark.parametrize(
    ("seconds", "begin"),
    [
        ({HASHED: 2.0, LOCAL: 2.1, "level": 1.95}, "You do not need Unskew for this job: by"),
        ({HASHED: 9.0, LOCAL: 2.0, "level": 1.95}, "Take grouping local, 4.5x faster than today's"),
        ({HASHED: 9.0, LOCAL: 6.0, "level": 2.0}, "Take grouping level, 4.5x faster than today's"),
    ],
)
def test_the_advice_is_the_least_that_is_as_good_as_the_best(
    seconds: dict[str, float], begin: str
) -> None:
    assert advise(predictions(**seconds), Work(1e-3)).startswith(begin)


def test_of_ways_that_are_as_good_the_one_with_fewer_pairs_is_named() -> None:
    made = predictions({"shuffle": 900.0}, shuffle=2.0, level=2.05, none=9.0, local=8.0)

    said = advise(made, Work(1e-3))

    assert said.startswith("Take grouping level, 4.4x faster than today's none (9.00 s)")
    assert "at the source it would be 8.00 s (3.9x)" in said


def test_what_the_job_does_today_is_what_it_is_compared_with() -> None:
    made = predictions(none=9.0, local=8.0, level=2.0, key=6.0)

    assert "3.0x faster than today's key (6.00 s)" in advise(made, Work(1e-3), "key")
    assert "which it has already" in advise(made, Work(1e-3), "level")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ({}, "Take grouping level, which today's auto takes by itself: a batch takes 2.00 s"),
        ({"fish": 1.0}, "Take grouping fish, 2.0x faster than the level that today's auto takes"),
        ({HASHED: 2.0}, "You do not need Unskew for this job"),
    ],
)
def test_a_job_that_chooses_by_itself_is_compared_with_its_best_way(
    seconds: dict[str, float], said: str
) -> None:
    made = predictions(**({HASHED: 9.0, LOCAL: 8.0, "level": 2.0, "key": 6.0} | seconds))

    assert advise(made, Work(1e-3), "auto").startswith(said)


def test_of_an_operator_that_forbids_splitting_work_at_the_source_is_not_spoken_of() -> None:
    said = advise(predictions(none=9.0, key=9.0, whole=3.0), Work(1e-3), "key")

    assert said.startswith("Take grouping whole, 3.0x faster than today's key (9.00 s)")
    assert "source" not in said


def test_what_spark_computes_itself_needs_no_unskew() -> None:
    said = advise(predictions(none=1.0, local=2.0, level=2.0), Work(1e-6, native=True))

    assert "You do not need Unskew for this job: Spark computes its operator itself" in said


def test_every_way_of_a_trace_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    trace = "zipf:z=1.4,keys=500,records=20000"
    assert main(["compare", "--trace", trace, *ASKED, "--json"]) == 0

    result = json.loads(capsys.readouterr().out)
    ways = {row["way"]: row for row in result["predictions"]}
    assert set(ways) == set(WAYS)
    seconds = [row["seconds"] for row in result["predictions"]]
    assert seconds == sorted(seconds)
    # Batches of 5000 records of 1 ms in four even partitions, and some keys at 20 ms each.
    work = {way: row["parts"]["work"] for way, row in ways.items()}
    assert work["level"] > 1.25
    assert work["level"] < work[LOCAL]
    assert work["level"] < work[HASHED]
    assert ways["level"]["pairs"] < ways[LOCAL]["pairs"]
    assert result["advice"].startswith(f"Take grouping {result['take']}, ")


def test_a_file_of_keys_gives_tables_a_sentence_and_the_heaviest_keys_by_hash(
    key_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "--file", str(key_file), *ASKED]) == 0

    printed = capsys.readouterr().out
    assert "4,000 of 4,000 records" in printed
    assert "Take grouping " in printed
    assert "user-0" not in printed
    assert re.search(r"^ *[0-9a-f]{16} +2,\d{3} +50\.\d\d% +20\d%", printed, re.MULTILINE)

    assert main(["compare", "--file", str(key_file), *ASKED, "--show-keys"]) == 0
    assert "user-0 " in capsys.readouterr().out


@pytest.mark.parametrize("words", [(), ("--table",)])
def test_tables_are_as_wide_as_the_terminal_and_figures_whole(
    key_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    asked = ("--partitions", "4") if words else ASKED
    assert main(["compare", "--file", str(key_file), *asked, *words, "--json"]) == 0
    predictions = json.loads(capsys.readouterr().out)["predictions"]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "48")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert main(["compare", "--file", str(key_file), *asked, *words]) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 48
    figure = "rows_of_file" if words else "records_per_second"
    shown = {word for line in lines for word in line.split()}
    for each in predictions:
        assert f"{each[figure]:,.{1 if words else 0}f}" in shown


def test_a_key_expression_over_json_needs_no_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "records.jsonl"
    lines = [{"user": f"u{number % 40}"} for number in range(2000)] + [{"page": "a"}] * 7
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    key = "get_json_object(value, '$.user')"

    assert main(["compare", "--file", str(file), "--key", key, *ASKED, "--json"]) == 0

    result = json.loads(capsys.readouterr().out)
    assert (result["sample"]["records"], result["sample"]["without_key"]) == (2000, 7)
    assert result["keys"]["keys"] == 40
    assert result["notes"][0].startswith("7 records have no key")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty; there must be records to sample"),
        ("a\n" * 37, "37 records with a key are too few to say anything; at least 1,000"),
    ],
)
def test_records_that_say_nothing_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    file = tmp_path / "keys.txt"
    file.write_text(text)

    assert main(["compare", "--file", str(file), *ASKED]) == 2

    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert problem in printed.err


def test_records_without_a_key_are_one_line(
    key_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "--file", str(key_file), "--key", "key", *ASKED]) == 2

    problem = "none of 4,000 records has a key; name another expression with --key\n"
    assert capsys.readouterr().err.endswith(problem)


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        ([b"same"] * 2000, "All records have the same key"),
        ([b"%d" % n for n in range(2000)], "Every record has a key of its own"),
        ([b"\xff\xfe%d" % (n % 9) for n in range(2000)], "100% of the keys are no UTF-8 text"),
    ],
)
def test_keys_of_an_extreme_kind_are_said_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[bytes], note: str
) -> None:
    file = tmp_path / "keys.txt"
    file.write_bytes(b"\n".join(lines))

    assert main(["compare", "--file", str(file), *ASKED, "--json"]) == 0

    assert any(each.startswith(note) for each in json.loads(capsys.readouterr().out)["notes"])


class _Fetches(HTMLParser):
    """Notes what a page would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag in {"script", "link", "img", "iframe"} or names & {"src", "href", "onload"}:
            self.noted.append(tag)


def test_the_report_is_one_page_that_fetches_nothing(
    key_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = tmp_path / "<b>&.txt"
    nasty.write_text(key_file.read_text().replace("user-0", "<script>alert(1)</script>"))
    page = tmp_path / "report.html"

    asked = (*ASKED, "--show-keys", "--html", str(page))
    assert main(["compare", "--file", str(nasty), *asked]) == 0

    text = page.read_text()
    assert write_css() in text
    reader = _Fetches()
    reader.feed(text)
    assert reader.noted == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 2
    for picture in pictures:
        assert ET.fromstring(picture).tag == "svg"  # noqa: S314 - our own
    assert all(f">{way}</text>" in pictures[0] for way in WAYS)


def test_constants_of_this_machine_are_used_and_named(
    key_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "machine.json"
    write_calibration(Calibration(Constants(fixed_seconds=100.0), 3, "2026-01-01 00:00"), file)

    asked = (*ASKED, "--constants", str(file), "--json")
    assert main(["compare", "--file", str(key_file), *asked]) == 0

    result = json.loads(capsys.readouterr().out)
    assert result["constants_of"] == "this machine, measured 2026-01-01 00:00 UTC on 3 cores"
    assert all(row["parts"]["fixed"] == 100.0 for row in result["predictions"])

    file.write_text('{"format": 1}')
    assert main(["compare", "--file", str(key_file), *asked]) == 2
    assert "is not a calibration of this version" in capsys.readouterr().err


def test_all_that_is_wrong_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ("--cost", "fast", "--setup", "3", "--slots", "none", "--html", "x.pdf", "--plot", "a")
    assert main(["compare", "--trace", "zipf:z=x", "--partitions", "0", *wrong]) == 2

    lines = capsys.readouterr().err.splitlines()
    for begin in (
        "trace zipf.z: ",
        "--cost: ",
        "--setup: ",
        "--slots: a whole number from 1",
        "--partitions: a whole number from 1",
        "--html: a file name that ends with .html",
        "--plot: belongs to a simulation",
    ):
        assert any(line.startswith(begin) for line in lines), (begin, lines)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--trace", "zipf", "--setup", "1ms"], "--cost: missing, but --setup"),
        (["--file", "a", "--trace", "zipf", "--cost", "1us"], "(got --file and --trace)"),
        ([], "give exactly one of JOB, --topic, --file and --trace (got none)"),
        (["--cost", "1us"], "--file and --trace (got none)"),
        (["--topic", "t", "--cost", "1us"], "--bootstrap-servers: missing"),
        (["--file", "a"], "--cost: missing; an operator's time for a record"),
        (["--file", "/no/such", "--cost", "1us"], "--file: /no/such: No such file or directory"),
        (["--file", "a", "--cost", "1us", "--key", " "], "--key: is empty"),
        (["word_count", "--key", "key"], "--key: belongs to --topic or --file"),
    ],
)
def test_a_question_that_is_not_whole_is_said(
    capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert main(["compare", "--partitions", "4", *words]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert problem in printed.err
