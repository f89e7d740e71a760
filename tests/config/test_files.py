"""Files that are no jobs at all: one line each, little memory, little time."""

import os
import time
import tracemalloc
from pathlib import Path

import pytest

from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.config.yaml.reader import DEPTH_MAX, NODES_MAX

NOBODY = 65_534
SECONDS_MAX = 2.0
MEMORY_BYTES_MAX = 64 * 1024 * 1024


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load_job("word_count")


def problems_of(content: bytes) -> list[str]:
    """The lines for a file of this content, made in little time."""
    Path("job.yaml").write_bytes(content)
    begin = time.process_time()
    lines = lint(["job.yaml"])
    assert time.process_time() - begin < SECONDS_MAX
    return lines


def memory_for(content: bytes) -> int:
    """The most bytes that are in use while a file of this content is read."""
    Path("job.yaml").write_bytes(content)
    tracemalloc.start()
    try:
        lint(["job.yaml"])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_missing_file() -> None:
    assert lint(["nowhere.yaml"]) == ["nowhere.yaml:1:1: file: does not exist; check the path"]


def test_missing_file_named_nearly_as_a_shipped_job() -> None:
    assert lint(["word_cuont"]) == [
        'word_cuont:1:1: file: does not exist; did you mean the shipped job "word_count"?'
    ]


def test_folder() -> None:
    Path("jobs").mkdir()

    assert lint(["jobs"]) == ["jobs:1:1: file: is a folder without YAML files; name a file"]


def test_file_without_permission() -> None:
    Path("job.yaml").write_text("name: a")
    Path("job.yaml").chmod(0)
    Path().chmod(0o711)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)  # root may read everything
    try:
        lines = lint(["job.yaml"])
    finally:
        os.seteuid(user)

    assert lines == ["job.yaml:1:1: file: may not be read; check its permissions"]


def test_path_through_a_file() -> None:
    Path("job.yaml").write_text("name: a")

    assert lint(["job.yaml/job.yaml"]) == [
        "job.yaml/job.yaml:1:1: file: cannot be read: Not a directory; check the path"
    ]


def test_name_too_long_for_a_file() -> None:
    name = "a" * 300 + ".yaml"

    assert lint([name]) == [f"{name}:1:1: file: cannot be read: File name too long; check the path"]


def test_name_that_is_no_text() -> None:
    assert lint(["job\udcff\n.yaml"]) == [
        "job\\udcff\\n.yaml:1:1: file: does not exist; check the path"
    ]


def test_name_with_a_zero_byte() -> None:
    assert lint(["job\0.yaml"]) == [
        "job\\x00.yaml:1:1: file: cannot be read: embedded null byte; check the path"
    ]


def test_empty_name() -> None:
    assert lint([""]) == [".:1:1: file: is a folder without YAML files; name a file"]


def test_binary_file() -> None:
    assert problems_of(b"\x7fELF\x02\x01\x01\x00\x00") == [
        "job.yaml:1:1: file: is binary, not text; name a YAML file in UTF-8"
    ]


def test_file_in_another_encoding() -> None:
    assert problems_of("name: word_count\n# größer\n".encode("latin-1")) == [
        "job.yaml:2:5: file: is not UTF-8; save it as UTF-8"
    ]


def test_byte_order_mark_is_fine() -> None:
    assert "job.yaml:1:7: name: a text (got 1); put it in quotes" in problems_of(
        "\ufeffname: 1".encode()
    )


def test_file_of_ten_megabytes() -> None:
    assert problems_of(b"# comment\n" * 1_000_000) == [
        "job.yaml:1:1: file: larger than 256 KiB; a job file is a few pages of YAML"
    ]


@pytest.mark.timeout(60)
def test_a_file_that_never_ends_is_not_waited_for() -> None:
    os.mkfifo("pipe")

    assert lint(["/dev/zero", "pipe"]) == [
        "/dev/zero:1:1: file: cannot be read: not a regular file; check the path",
        "pipe:1:1: file: cannot be read: not a regular file; check the path",
    ]


@pytest.mark.timeout(60)
def test_a_reference_to_a_pipe_is_not_waited_for() -> None:
    os.mkfifo("pipe")
    pipe = Path("pipe").absolute()

    lines = problems_of(f"name: ${{file:{pipe}}}".encode())

    problem = f"name: the file {pipe} cannot be read: not a regular file; check path"
    assert any(problem in line for line in lines)


@pytest.mark.parametrize("prefix", ["0x", "0o", "", "1."])
def test_an_endless_number_is_one_problem(prefix: str) -> None:
    lines = problems_of(b"partitions: " + prefix.encode() + b"7" * 5_000)

    problem = f"job.yaml:1:13: yaml: a number of {5_000 + len(prefix)} characters; quote it"
    assert any(line.startswith(problem) for line in lines)


def test_an_escape_that_is_no_character_is_one_problem() -> None:
    assert problems_of(b'name: "\\UFFFFFFFF"') == [
        "job.yaml:1:1: yaml: not YAML: a number in it is out of range; check escapes and directives"
    ]


@pytest.mark.timeout(60)
def test_a_pattern_with_many_choices_is_not_tried() -> None:
    source = f"{{type: kafka, bootstrap_servers: 'a:1', pattern: {'a?' * 30 + 'a' * 30}}}"
    sinks = f"[{{type: kafka, topic: {'a' * 30}}}]"

    assert problems_of(f"source: {source}\nsinks: {sinks}\n".encode())


DEEP = {
    "lists": b"a: " + b"[" * 10_000,
    "mappings": b"a: " + b"{a: " * 10_000,
    "entries": b"a: " + b"- " * 10_000,
    "keys": b"? " * 10_000,
    "lines": b"".join(b" " * depth + b"a:\n" for depth in range(600)),
    "closed lists": b"[" * 10_000 + b"]" * 10_000,
}


@pytest.mark.parametrize("content", DEEP.values(), ids=DEEP)
def test_deep_nesting(content: bytes) -> None:
    lines = problems_of(content)

    assert len(lines) == 1
    assert f"nested deeper than {DEPTH_MAX} levels; a job needs about five" in lines[0] or (
        "yaml: " in lines[0]
    )


ALIASES = b"\n".join(
    [
        b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]",
        *(
            b"a%d: &a%d [%s]" % (level, level, b", ".join([b"*a%d" % (level - 1)] * 10))
            for level in range(1, 12)
        ),
    ]
)


def test_alias_bomb() -> None:
    [line] = problems_of(ALIASES)

    assert line.startswith(f"job.yaml:4:45: yaml: more than {NODES_MAX} values, those of aliases")


def test_alias_chain_that_nests() -> None:
    levels = [b"a0: &a0 [x]"]
    levels += [b"a%d: &a%d [*a%d]" % (level, level, level - 1) for level in range(1, 100)]

    assert problems_of(b"\n".join(levels)) == [
        f"job.yaml:40:12: yaml: nested deeper than {DEPTH_MAX} levels; a job needs about five"
    ]


LARGE = {
    "entries": b"- a\n" * 15_000,
    "numbers": b"a: [" + b"1," * 30_000 + b"]",
    "keys": b"".join(b"k%d: v\n" % index for index in range(5_000)),
    "text": b"a: " + b"x" * 60_000,
    "escapes": b'a: "' + b"\\n" * 25_000 + b'"',
    "number": b"a: " + b"9" * 50_000,
    "colons": b"a: " + b"x: " * 15_000,
    "open references": b"a: ${" * 10_000,
    "references": b"a: '" + b"${env:A" * 7_500 + b"'",
    "password": b"password: '" + b"a " * 25_000 + b"'",
    "secret": b"kafka.sasl.jaas.config: '" + b"a" * 50_000 + b"'",
    "anchors": b"&a " * 12_500,
    "directives": b"%TAG ! x\n" * 5_000,
}


@pytest.mark.parametrize("content", LARGE.values(), ids=LARGE)
@pytest.mark.timeout(60)  # what takes the square of such a length takes longer
def test_large_but_legal_or_not_is_quick(content: bytes) -> None:
    assert problems_of(content)


def test_thousands_of_problems_are_not_all_printed() -> None:
    lines = problems_of(b"".join(b"key%d: v\n" % index for index in range(4_000)))

    assert 100 < len(lines) < 120
    assert "more problems; mend those above first" in "\n".join(lines)


@pytest.mark.parametrize(
    "content",
    [
        b"# comment\n" * 1_000_000,
        DEEP["lists"],
        ALIASES,
        LARGE["entries"],
        *(
            pytest.param(content, marks=pytest.mark.slow)
            for content in [*DEEP.values(), *LARGE.values()]
        ),
    ],
    ids=lambda content: content[:12].decode(),
)
def test_no_file_takes_much_memory(content: bytes) -> None:
    assert memory_for(content) < MEMORY_BYTES_MAX
