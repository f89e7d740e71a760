"""Keys of files in the usual formats, against Python's own readers of them."""

import bz2
import csv
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from unskew.grouping.errors import GroupingError
from unskew.grouping.simulation.specs import SpecError
from unskew.grouping.simulation.streams.formats import FORMATS, reading_of
from unskew.grouping.simulation.streams.key_files import hash_text, read_keys
from unskew.grouping.simulation.streams.traces import open_trace

LINES = [
    "user,product,text",
    "a,B001,good",
    'b,"B,002","said ""no"""',
    '"c ""d""",B003,',
    ",,",
    'd,"",x\r',
    "e",
    "f,Bä,last\r",
    "g,B004",
]
TITLED = "\n".join(LINES).encode()
OBJECTS = [
    {"user": "a", "n": 1},
    {"n": 2, "user": 'b "c" \\ é'},
    {"other": {"user": "no"}, "user": "d", "list": ["user", {"user": 5}]},
    {"user": None, "n": 1},
    {"user": ["no"]},
    {"user": 17.5},
    {"user": ""},
    {"name": "user", "user": "e"},
]


def keys(spec: str) -> list[int]:
    return np.concatenate([chunk.keys for chunk in open_trace(spec).chunks()]).tolist()


def hashes(texts: list[str]) -> list[int]:
    return [int(hash_text(text)) for text in texts]


def written(folder: Path, content: bytes) -> Path:
    path = folder / "dump"
    path.write_bytes(content)
    return path


def test_words_are_parted_by_white_space(tmp_path: Path) -> None:
    path = written(tmp_path, "  to be,\tor  not\n\nto\r\nbé ".encode())

    assert keys(f"text:path={path}") == hashes(["to", "be,", "or", "not", "to", "bé"])


@pytest.mark.parametrize(("column", "number"), [("user", 0), ("product", 1), ("text", 2)])
def test_a_column_is_that_of_pythons_csv(tmp_path: Path, column: str, number: int) -> None:
    path = written(tmp_path, TITLED)
    rows = list(csv.reader(TITLED.decode().splitlines()))[1:]
    expected = hashes([row[number] for row in rows if len(row) > number and row[number]])

    assert keys(f"csv:path={path},title={column}") == expected
    first = hashes([column]) + expected
    assert keys(f"csv:path={path},column={number + 1}") == first


def test_a_column_of_a_count_of_pages(tmp_path: Path) -> None:
    path = written(tmp_path, b"en Main_Page 242332 1\nde Zipf 3 2\n")

    expected = hashes(["Main_Page", "Zipf"])
    assert keys(f"csv:path={path},column=2,separator=space") == expected


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_field_is_that_of_pythons_json(tmp_path: Path, ascii_only: bool) -> None:
    lines = [json.dumps(line, ensure_ascii=ascii_only) for line in OBJECTS]
    lines += [json.dumps(OBJECTS[0], separators=(",", ":")), '{"user" : "cut', "", "no json"]
    path = written(tmp_path, "\n".join(lines).encode())

    texts = ["a", 'b "c" \\ é', "d", "17.5", "e", "a"]
    assert keys(f"json-lines:path={path},field=user") == hashes(texts)


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_change_nothing(tmp_path: Path, name: str) -> None:
    lines = [json.dumps({"a": f"x,{i % 7}", "user": f"u{i % 50}"}) for i in range(300)]
    path = written(tmp_path, "\n".join(lines).encode())
    params = FORMATS[name](path=str(path), **({"field": "user"} if name == "json-lines" else {}))
    hash_block = reading_of(params).hash_block
    whole, cut = (
        np.concatenate(list(read_keys(path, size, hash_block))) for size in (1 << 20, 100)
    )

    assert np.array_equal(whole, cut)
    assert whole.size >= 300


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("csv:path={path},title=prodct", 'a name in the first line (got "prodct"); did you mean'),
        ("csv:path={path},column=0", "trace csv.column: at least 1 (got 0)"),
        ("csv:path={path},column=9", "no keys in it, in the column 9 is expected"),
        ("csv:path=/no/such,title=a", "trace: /no/such: No such file"),
        ("csv:path={path},separator=colon", "trace csv.separator: one of comma, tab, space"),
        ("json-lines:path={path}", "trace json-lines.field: missing"),
        ("json-lines:path={path},field=x", 'no keys in it, in the field "x" is expected'),
        ("text:file={path}", "trace text.path: missing"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, spec: str, problem: str) -> None:
    with pytest.raises((SpecError, GroupingError)) as raised:
        open_trace(spec.format(path=written(tmp_path, TITLED)))

    assert problem in str(raised.value)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_read_as_they_are_published(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = written(tmp_path, pack(TITLED[:60]) + pack(TITLED[60:]))
    plain = tmp_path / "plain"
    plain.write_bytes(TITLED)

    for spec in ("csv:path={},title=product", "text:path={}", "file:{}"):
        assert keys(spec.format(path)) == keys(spec.format(plain)) != []


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_that_is_cut_off_is_named(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = written(tmp_path, pack(TITLED)[:-12])

    with pytest.raises(GroupingError, match=f"trace: {path}: cannot be unpacked"):
        open_trace(f"text:path={path}")
    with pytest.raises(GroupingError, match=f"trace: {path}: "):
        open_trace(f"text:path={written(tmp_path, pack(TITLED)[:12] + bytes(40))}")


def test_only_lines_with_the_beginning_are_read_without_it(tmp_path: Path) -> None:
    quotes = b"P\thttp://a\nT\t2008-09-09\nQ\tyes we can\nQ\tno\nL\tQ b\n"
    assert keys(f"text:path={written(tmp_path, quotes)},starts=Q") == hashes(
        ["yes", "we", "can", "no"]
    )

    reviews = b"product/productId: B003\nreview/userId: A1\nproduct/productId: B4\n"
    spec = "csv:path={},column=2,separator=space,starts=product/productId:"
    assert keys(spec.format(written(tmp_path, reviews))) == hashes(["B003", "B4"])


def test_a_beginning_that_no_line_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match='a word each of lines that begin with "X" is expected'):
        open_trace(f"text:path={written(tmp_path, TITLED)},starts=X")
