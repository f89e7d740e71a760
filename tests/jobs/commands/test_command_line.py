import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from unskew import __version__
from unskew.jobs.__main__ import COMMANDS, main


def test_help_lists_every_command_and_needs_no_spark() -> None:
    code = (
        "import sys\nfrom unskew.jobs.__main__ import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'pyspark', 'numba', 'kafka'} & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert all(re.search(rf"^ +{name}( |$)", printed, re.MULTILINE) for name in COMMANDS)
    assert printed.splitlines()[-1] == "[]"


def test_without_a_word_the_commands_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["unskew"])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.err) == (0, "")
    assert all(re.search(rf"^ +{name}( |$)", printed.out, re.MULTILINE) for name in COMMANDS)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"unskew {__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: unskew {name}")


def test_every_module_of_a_command_is_in_the_table(root: Path) -> None:
    folder = root / "jobs" / "commands"
    commands = {
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if "\ndef configure(" in path.read_text()
    }
    assert commands == {module for module, _ in COMMANDS.values()}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["lnit"], 'unskew: unknown command (got "lnit"); did you mean "lint"?'),
        (["broker", "--prot", "9092"], '--prot: unknown option; did you mean "--port"?'),
        (["lint", "a", "--jsn=1"], "--jsn: unknown option; one of -h, --help, --debug"),
        (["lint", "--agianst", "a"], '--agianst: unknown option; did you mean "--against"?'),
        (["--vrsion"], '--vrsion: unknown option; did you mean "--version"?'),
        (["schema", "more"], 'schema: "more": unexpected argument'),
        (
            ["run", "a", "--log", "jsno"],
            '--log: one of auto, json, console (got "jsno"); did you mean "json"?',
        ),
        (["inspect", "a", "--batches", "07"], "--batches: a number with a leading zero"),
        (["lint"], "lint: the following arguments are required: FILE"),
    ],
)
def test_a_wrong_word_is_one_line_with_a_suggestion(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert line in printed.err


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
        (["--port", "0"], "--port: a whole number from 1 to 65535 (got 0)"),
        (["--port", "http"], '--port: a whole number from 1 to 65535 (got "http")'),
        (["--topic", "a:b"], '--topic: a whole number from 1 to 1000 (got "b")'),
        (["--topic", "a:0"], "--topic: a whole number from 1 to 1000 (got 0)"),
        (["--topic", ":3"], 'digits, dots, dashes and underscores (got "")'),
        (["--topic", "a b"], 'digits, dots, dashes and underscores (got "a b")'),
    ],
)
def test_a_wrong_option_of_broker_is_named_before_anything_starts(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["broker", *words]) == 2
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert printed.err.startswith("broker: --")
    assert printed.err.endswith(f"{problem}\n")


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
