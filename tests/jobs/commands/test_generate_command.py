"""`unskew generate` into files: the streams, their totals, and what is refused."""

import argparse
import io
import os
import select
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.support.generated_streams import counted, generated, kafka_rows, read_oracle
from unskew.config.errors import ExternalError, UsageError
from unskew.grouping.simulation.streams.traces import open_trace
from unskew.jobs.commands import generate
from unskew.jobs.generator.files import remove
from unskew.jobs.generator.options import STREAMS, read_plan
from unskew.jobs.generator.progress import Progress
from unskew.jobs.generator.settings import KafkaTarget

START = datetime(2026, 1, 1, tzinfo=UTC)


SHAPED = [stream for stream in STREAMS if stream != "keys"]
"""Streams whose keys follow the command line; those of `keys` follow a trace."""


def run(*words: str) -> int:
    """As `main` does, but with its errors."""
    parser = argparse.ArgumentParser()
    generate.configure(parser)
    return generate.run(parser.parse_args(words))


@pytest.mark.parametrize("stream", SHAPED)
@pytest.mark.parametrize(
    "windows", [(None, None), (7, None), (10, 4)], ids=["none", "tumbling", "sliding"]
)
def test_the_oracle_is_what_plain_python_counts(
    stream: str, windows: tuple[int | None, int | None], tmp_path: Path
) -> None:
    window, slide = windows
    words = [
        f"--{name}={value}s" for name, value in (("window", window), ("slide", slide)) if value
    ]
    generated(
        tmp_path / "s.parquet",
        *(stream, "--records=9000", "--rate=300", "--keys=300", "--users=250", "--rejected=0.02"),
        *("--late=0.1", "--late-by=8s", "--flare=0.3", "--flare-every=10s", "--flare-for=5s"),
        *("--drift=3s", f"--oracle={tmp_path / 'o.json'}", *words),
    )
    head, totals = read_oracle(tmp_path / "o.json")
    rejected, expected = counted(stream, kafka_rows(tmp_path / "s.parquet"), window, slide)

    assert totals == expected
    assert head["rejected"] == dict(rejected)
    assert head["records"] == 9000
    assert set(rejected) == set(
        {
            "lines": ["not_utf8"],
            "trades": ["not_decoded", "null_key", "volume_negative", "price_null", "no_event_time"],
            "posts": ["not_decoded", "user_null", "null_key", "no_event_time"],
        }[stream]
    )


@pytest.mark.parametrize("stream", STREAMS)
def test_a_seed_is_a_stream_whatever_its_length(stream: str, tmp_path: Path) -> None:
    options = (stream, "--rejected=0.01", "--late=0.05")
    once = generated(tmp_path / "1", *options, "--records=10000", "--seed=4")
    assert generated(tmp_path / "2", *options, "--records=10000", "--seed=4") == once
    assert generated(tmp_path / "3", *options, "--records=5000", "--seed=4") == once[:5000]
    assert generated(tmp_path / "4", *options, "--records=10000", "--seed=5") != once
    assert len(once) == 10_000


def test_a_seed_means_these_bytes(tmp_path: Path) -> None:
    # A stream that changes is another stream for everyone who noted its seed.
    assert {name: generated(tmp_path / name, name, "--records=2")[1] for name in STREAMS} == {
        "lines": b"Daba dala rafu daga dagi daba daba leza.",
        "trades": b'{"symbol":"BAW","price":393.2599,"volume":626,'
        b'"traded_at":"2026-01-01T00:00:00.001000Z"}',
        "posts": b'{"user":"u86757","text":"On my way #dali","hashtags":["dali"],'
        b'"posted_at":"2026-01-01T00:00:00.001000Z"}',
        "keys": b"ke341955b45c40bd4",
    }


@pytest.mark.parametrize("window", [None, 7])
def test_keys_are_those_of_a_trace(window: int | None, tmp_path: Path) -> None:
    trace = "zipf-turnover:z=1,keys=300,turnover=0.5,life_records=2000,records=9000"
    generated(
        tmp_path / "s.parquet",
        *("keys", f"--trace={trace}", "--rate=300", "--rejected=0.02", "--late=0.1"),
        *("--late-by=8s", f"--oracle={tmp_path / 'o.json'}"),
        *([f"--window={window}s"] if window else []),
    )
    head, totals = read_oracle(tmp_path / "o.json")
    rows = kafka_rows(tmp_path / "s.parquet")
    rejected, expected = counted("lines", rows, window)

    assert totals == expected
    assert (head["rejected"], head["records"]) == (dict(rejected), 9000)
    drawn = np.concatenate([chunk.keys for chunk in open_trace(trace).chunks()])
    words = [value.removeprefix(b"\xff\xfe").decode() for value, _ in rows]
    assert words == [f"k{key:016x}" for key in drawn.tolist()]


def test_a_trace_is_as_long_as_it_is(tmp_path: Path) -> None:
    trace = "--trace=amazon-like:records=5000"

    assert len(generated(tmp_path / "1", "keys", trace)) == 5000
    assert len(generated(tmp_path / "2", "keys", trace, "--records=70")) == 70
    other = generated(tmp_path / "3", "keys", trace, "--seed=2")
    assert other != generated(tmp_path / "1", "keys", trace)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["lines", "--trace=zipf"], "--trace: only of the stream keys"),
        (["keys", "--trace=zipf", "--skew=1", "--flare-for=3s"], "--skew: not of the stream keys"),
        (["keys", "--trace=file:a.txt"], "--trace: trace: unknown"),
        (["keys", "--trace=wikipedia-like:z=-1,nix=3"], "wikipedia-like.nix"),
    ],
)
def test_a_trace_that_cannot_be_drawn_from_is_named(words: list[str], problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        run(*words, "--out=never")

    assert problem in str(raised.value)


def test_skew_is_zipfs_exponent(tmp_path: Path) -> None:
    lines = generated(
        tmp_path / "l", "lines", "--records=40000", "--skew=1", "--keys=1000", "--drift=0s"
    )
    counts = Counter(word for line in lines for word in line.lower().rstrip(b".").split())
    total = sum(counts.values())
    harmonic = sum(1 / rank for rank in range(1, 1001))
    assert total / 40_000 == pytest.approx(10, rel=0.01)
    for rank, (_, count) in enumerate(counts.most_common(5), start=1):
        assert count / total == pytest.approx(1 / rank / harmonic, rel=0.05)
    even = generated(tmp_path / "e", "lines", "--records=20000", "--skew=0", "--keys=50")
    counts = Counter(word for line in even for word in line.lower().rstrip(b".").split())
    assert len(counts) == 50
    assert max(counts.values()) < 1.15 * min(counts.values())


def test_the_head_drifts(tmp_path: Path) -> None:
    lines = generated(tmp_path / "l", "lines", "--duration=30s", "--drift=10s", "--rate=500")
    hottest = [
        Counter(
            word for line in lines[begin : begin + 5000] for word in line.lower()[:-1].split()
        ).most_common(1)[0][0]
        for begin in range(0, 15_000, 5000)
    ]
    assert len(set(hottest)) == 3


@pytest.mark.parametrize("stream", ["trades", "posts"])
def test_one_key_flares_up_and_is_gone(stream: str, tmp_path: Path) -> None:
    generated(
        tmp_path / "s.parquet",
        stream,
        "--duration=60s",
        "--rate=500",
        "--flare=0.6",
        "--flare-every=60s",
        "--flare-for=20s",
        "--skew=0.5",
        f"--oracle={tmp_path / 'o'}",
        "--window=20s",
    )
    _, totals = read_oracle(tmp_path / "o")
    column = "trades" if stream == "trades" else "posts"
    shares = []
    for begin in range(0, 60, 20):
        here = {
            path[-1]: each[column]
            for path, each in totals.items()
            if path[0] == START + timedelta(seconds=begin)
        }
        hottest = max(here, key=lambda key: here[key])
        shares.append(here[hottest] / sum(here.values()))
    before, during, after = shares
    assert during > 0.15
    assert during > 4 * max(before, after)


def test_late_records_lie_back_so_far_and_no_further(tmp_path: Path) -> None:
    generated(
        tmp_path / "s.parquet",
        "lines",
        "--records=20000",
        "--rate=1000",
        "--late=0.2",
        "--late-by=5s",
    )
    rows = kafka_rows(tmp_path / "s.parquet")
    behind = [
        (START + timedelta(milliseconds=number) - at).total_seconds()
        for number, (_, at) in enumerate(rows)
    ]
    assert max(behind) <= 5
    assert min(behind) >= 0
    assert sum(late > 0 for late in behind) / len(behind) == pytest.approx(0.2, abs=0.02)


def test_start_and_rate_are_those_of_event_time(tmp_path: Path) -> None:
    generated(
        tmp_path / "s.parquet",
        "lines",
        "--records=11",
        "--rate=0.5",
        "--start=2026-03-01T12:00:00+02:00",
    )
    times = [at for _, at in kafka_rows(tmp_path / "s.parquet")]
    assert times[0] == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert times[-1] == datetime(2026, 3, 1, 10, 0, 20, tzinfo=UTC)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(UsageError) as printeded:
        run(
            "lnes",
            "--rate=0",
            "--keys=x",
            "--rejected=2",
            "--late-by=5",
            "--records=5",
            "--duration=5s",
            "--slide=5s",
            "--topic=a b",
            "--start=noon",
            "--kafka=x",
            "--flare=0.5",
            "--flare-every=1s",
            "--out=/no/such/file",
        )
    assert [problem.split(": ")[1] for problem in printeded.value.problems] == [
        *("STREAM", "--rate", "--keys", "--rejected", "--late-by", "--start", "--topic", "--out"),
        *("--kafka", "--records and --duration", "--out and --topic", "--out and --kafka"),
        *("--slide", "--flare-for"),
    ]


def test_a_setting_of_the_client_may_be_in_a_file(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    generate.configure(parser)
    (tmp_path / "password").write_text("s3cret\n")
    words = ["lines", "--kafka", "a=b=c", "--kafka", f"sasl.password=@{tmp_path / 'password'}"]
    target = read_plan(parser.parse_args(words)).target
    assert isinstance(target, KafkaTarget)
    assert target.options == (("a", "b=c"), ("sasl.password", "s3cret"))
    with pytest.raises(UsageError, match="generate: --kafka x: /no/file: cannot be read: "):
        run("lines", "--kafka", "x=@/no/file")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_renews_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    out = Terminal()
    progress = Progress("lines", "a topic", 1000.0, out)
    for later, records in ((0.2, 100), (0.6, 900), (0.9, 1300), (1.6, 1900)):
        now[0] = 100 + later
        progress.show(records)
    progress.clear()
    assert out.getvalue().split("\r\x1b[K") == [
        "",
        "lines: 900 records in 1 s, 1,500/s of 1,000/s asked",
        "lines: 1,900 records in 2 s, 1,000/s of 1,000/s asked",
        "",
    ]


def test_elsewhere_a_line_is_written_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    out = io.StringIO()
    progress = Progress("posts", "a topic", None, out)
    for second in range(70):
        now[0] = 100.0 + second
        progress.show(second * 10)
    progress.clear()
    assert out.getvalue() == (
        "posts: 300 records in 30 s, 10/s\nposts: 600 records in 60 s, 10/s\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out=/dev/full"], "generate: /dev/full: No space left on device; 0 records are in it"),
        (["--out=OUT", "--oracle=/dev/full"], "generate: --oracle: /dev/full: No space left"),
    ],
)
def test_a_full_disk_is_one_line(words: list[str], message: str, tmp_path: Path) -> None:
    offsets = [word.replace("OUT", str(tmp_path / "out")) for word in words]
    with pytest.raises(ExternalError) as printed:
        run("lines", "--records=5000", *offsets)
    (problem,) = printed.value.problems
    assert problem.startswith(message)


def test_an_output_that_cannot_be_opened_costs_no_oracle(tmp_path: Path) -> None:
    (tmp_path / "earlier").write_text("of an earlier run")
    for name in ("earlier", "new"):
        with pytest.raises(ExternalError, match="generate: --out: "):
            run("lines", "--records=5", "--out=/proc/no", f"--oracle={tmp_path / name}")
    assert (tmp_path / "earlier").read_text() == "of an earlier run"
    assert not (tmp_path / "new").exists()


def test_an_oracle_that_cannot_be_written_costs_no_output(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("of an earlier run")
    with pytest.raises(ExternalError, match="generate: --oracle: "):
        run("lines", "--records=5", f"--out={tmp_path / 'out'}", "--oracle=/proc/no")
    assert (tmp_path / "out").read_text() == "of an earlier run"


def test_only_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "none"):
        remove(str(tmp_path / name))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link", "pipe"]
    remove(str(tmp_path / "file"))
    assert not (tmp_path / "file").exists()


def test_a_failed_stream_takes_its_oracle_along_but_no_device(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("o", "null"):
        with pytest.raises(ExternalError, match="No space left"):
            run("lines", "--records=5000", "--out=/dev/full", f"--oracle={tmp_path / name}")
    assert [each.name for each in tmp_path.iterdir()] == ["null"]


def test_what_cannot_be_finished_after_a_stop_is_no_success(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code = (
        "import sys, unskew.jobs.local.signals; from unskew.jobs.__main__ import main;"
        "unskew.jobs.local.signals.DEADLINE_SECONDS = 0.5; sys.exit(main())"
    )
    words = ("generate", "lines", "--records=1000000")
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words, f"--out={tmp_path / 'pipe'}"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(generate.__file__).parents[3])},
    )
    # Open, but nobody empties it: the pipe gets full, and a write waits for ever.
    try:
        assert select.select([pipe], [], [], 60)[0]
        process.terminate()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(pipe)
    assert process.returncode == 1
    assert errors == "generate: stopped while records were still unwritten\n"


def test_a_file_that_gets_full_keeps_whole_records(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; from unskew.jobs.__main__ import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)); sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "generate", "lines", "--records=50000", "--out=full"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(generate.__file__).parents[3])},
    )
    kept = (tmp_path / "full").read_bytes()
    assert done.returncode == 1
    lines = kept.count(b"\n")
    assert done.stderr == f"generate: full: File too large; {lines:,} records are in it\n"
    assert lines > 4096
    assert kept.endswith(b"\n")
