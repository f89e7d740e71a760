import os
import subprocess
import sys
from pathlib import Path

import pytest

from unskew.jobs.__main__ import COMMANDS, main


def unskew(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "unskew", *words], capture_output=True, text=True, check=False
    )


def test_help_lists_every_command_and_needs_no_spark() -> None:
    code = (
        "import sys\nfrom unskew.jobs.__main__ import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'pyspark', 'numba', 'kafka'} & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert all(f"  {name} " in printed for name in COMMANDS)
    assert printed.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: unskew {name}")


def test_every_command_has_its_module(root: Path) -> None:
    modules = {path.stem for path in (root / "jobs" / "commands").glob("*.py")} - {"__init__"}
    assert modules == set(COMMANDS)


def test_an_unknown_command_is_an_error_of_use() -> None:
    done = unskew("lnit")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "unskew", "schema"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # long before anything is printed
        errors = process.stderr.read()
    assert (process.returncode, errors) == (141, "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--port", "0"], "--port: from 1 to 65535 (got '0')"),
        (["--port", "http"], "--port: from 1 to 65535 (got 'http')"),
        (["--topic", "a:b"], "--topic: partitions are from 1 to 1000 (got 'b')"),
        (["--topic", "a:0"], "--topic: partitions are from 1 to 1000 (got '0')"),
        (["--topic", ":3"], "a name is 1 to 249 letters, digits, '.', '_' or '-' (got '')"),
        (["--topic", "a b"], "a name is 1 to 249 letters, digits, '.', '_' or '-' (got 'a b')"),
    ],
)
def test_a_wrong_option_of_broker_is_named_before_anything_starts(
    words: list[str], problem: str
) -> None:
    done = unskew("broker", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(problem)


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    options = ["--trace", "zipf:records=1000", "--grouping", "key", "--partitions", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "unskew", "simulate", *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "UNSKEW_CACHE": str(file)},
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"UNSKEW_CACHE: a folder that can be made and written (got {file}: Not a directory)\n"
    )
