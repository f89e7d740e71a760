"""The keys of files in the usual formats of dumps, as the hashes that Spark's `xxhash64` gives.

- a key a line (`grouping.simulation.streams.key_files`)
- text: each word is a key; words are parted by white space
- CSV: a column, by its number or its name in the first line; a field may be in double quotes, in
  which two of them stand for one; there is no newline in a field
- JSON lines: a field of each line's object, a text or a number, not one of an object within

What has no such column or field has no key, and is left out; so are lines that do not begin as
`starts` says, where it is given. Files may be compressed (`streams.dumps`). Kernels mark where keys
are in a block of whole lines; only texts with an escape in them become Python objects.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unskew.grouping.base import GroupingParams, Int64s, UInt64s
from unskew.grouping.kernels import kernel
from unskew.grouping.options.printed import show
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.grouping.simulation.specs import SpecError
from unskew.grouping.simulation.streams.dumps import first_line
from unskew.grouping.simulation.streams.key_files import SPARK_SEED, hash_lines, hash_text, xxhash64

Bytes = NDArray[np.uint8]
HashBlock = Callable[[bytes], UInt64s]

_NEWLINE, _RETURN, _TAB, _SPACE = 10, 13, 9, 32
_QUOTE, _BACKSLASH, _COLON, _COMMA = 34, 92, 58, 44
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93
_NULL = 110
SEPARATORS = {"comma": ",", "tab": "\t", "space": " ", "semicolon": ";", "pipe": "|"}


class DumpParams(GroupingParams):
    """A file of keys."""

    path: str = Field(min_length=1)
    """The file; it may be compressed by gzip, bzip2 or xz."""


class TextParams(DumpParams):
    """Words of a text."""

    starts: str | None = Field(None, min_length=1, examples=["Q"])
    """Read only the lines that begin with this, and of those what stands behind it."""


class CsvParams(TextParams):
    """A column of a file with separated columns."""

    column: int = Field(1, ge=1, le=10_000)
    """The column's number, from 1 on."""
    title: str | None = None
    """The column's name in the first line, instead of its number."""
    separator: Literal["comma", "tab", "space", "semicolon", "pipe"] = "comma"
    """What is between columns."""


class JsonLinesParams(DumpParams):
    """A field of a JSON object a line."""

    field: str = Field(min_length=1)
    """The field's name."""


FORMATS: dict[str, type[DumpParams]] = {
    "text": TextParams,
    "csv": CsvParams,
    "json-lines": JsonLinesParams,
}


class Reading(NamedTuple):
    """How a file is read."""

    hash_block: HashBlock = hash_lines
    """The keys of a block of whole lines."""
    titled: bool = False
    """Has the first line the names of columns?"""
    expected: str = "one a line"
    """Where keys are."""


KEY_A_LINE = Reading()


def reading_of(params: DumpParams) -> Reading:
    """How a file with these options is read; a column that is not there is an error."""
    if isinstance(params, CsvParams):
        reading = _reading_of_column(params)
    elif isinstance(params, JsonLinesParams):
        reading = Reading(json_field(params.field), expected=f'in the field "{params.field}"')
    else:
        reading = Reading(hash_words, expected="a word each")
    if isinstance(params, TextParams) and params.starts is not None:
        hash_block = partial(_hash_started, params.starts.encode(), reading.hash_block)
        expected = f"{reading.expected} of lines that begin with {show(params.starts)}"
        return reading._replace(hash_block=hash_block, expected=expected)
    return reading


def _reading_of_column(params: CsvParams) -> Reading:
    title, separator = params.title, SEPARATORS[params.separator]
    if title is None:
        hash_block = csv_column(params.column, separator)
        return Reading(hash_block, expected=f"in the column {params.column}")
    titles = [text.strip().strip('"') for text in first_line(Path(params.path)).split(separator)]
    if title not in titles:
        rule = f"trace csv.title: a name in the first line (got {show(title)})"
        raise SpecError(f"{rule}; {suggest_nearest(title, titles)}")
    hash_block = csv_column(titles.index(title) + 1, separator)
    return Reading(hash_block, titled=True, expected=f"in the column {show(title)}")


def _hash_started(starts: bytes, hash_block: HashBlock, block: bytes) -> UInt64s:
    """The hashes of what stands behind the beginning of the lines that begin so."""
    lines = re.findall(rb"^" + re.escape(starts) + rb"(.*\n)", block, re.MULTILINE)
    return hash_block(b"".join(lines))


def hash_words(block: bytes) -> UInt64s:
    """The hashes of the words of a block."""
    content = np.frombuffer(block, np.uint8)
    spans = np.empty((content.size // 2 + 1, 2), np.int64)
    return _hash_spans(content, spans[: _mark_words(content, spans)])


def csv_column(number: int, separator: str) -> HashBlock:
    """Make the kernel that hashes a column, by its number from 1 on."""

    def mark(content: Bytes, spans: Int64s, escaped: Bytes) -> int:
        return _mark_column(content, number, ord(separator), spans, escaped)

    def unescape(text: bytes) -> str:
        return text.replace(b'""', b'"').decode(errors="replace")

    return partial(_hash_marked, mark, unescape)


def json_field(name: str) -> HashBlock:
    """Make the kernel that hashes a field of JSON lines."""
    wanted = np.frombuffer(json.dumps(name, ensure_ascii=False)[1:-1].encode(), np.uint8)

    def mark(content: Bytes, spans: Int64s, escaped: Bytes) -> int:
        return _mark_field(content, wanted, spans, escaped)

    return partial(_hash_marked, mark, _unescaped)


def _hash_marked(
    mark: Callable[[Bytes, Int64s, Bytes], int], unescape: Callable[[bytes], str], block: bytes
) -> UInt64s:
    """The hashes of the texts that `mark` finds, at most one a line."""
    content = np.frombuffer(block, np.uint8)
    lines = np.count_nonzero(content == _NEWLINE)
    spans, escaped = np.empty((lines, 2), np.int64), np.zeros(lines, np.uint8)
    known = mark(content, spans, escaped)
    hashes = _hash_spans(content, spans[:known])
    for i in np.flatnonzero(escaped[:known]):
        hashes[i] = hash_text(unescape(block[spans[i, 0] : spans[i, 1]]))
    return hashes


def _unescaped(text: bytes) -> str:
    try:
        return str(json.loads(b'"' + text + b'"'))
    except ValueError:
        return text.decode(errors="replace")


@kernel
def _hash_spans(content: Bytes, spans: Int64s) -> UInt64s:
    out = np.empty(spans.shape[0], np.uint64)
    for i in range(out.size):
        out[i] = xxhash64(content, spans[i, 0], spans[i, 1], SPARK_SEED)
    return out


@kernel
def _is_white(byte: int) -> bool:
    return byte == _SPACE or _TAB <= byte <= _RETURN


@kernel
def _mark_words(content: Bytes, spans: Int64s) -> int:
    known = 0
    begin = -1
    for i in range(content.size):
        if not _is_white(content[i]):
            begin = i if begin < 0 else begin
        elif begin >= 0:
            spans[known] = begin, i
            known += 1
            begin = -1
    return known


@kernel
def _mark_column(content: Bytes, number: int, separator: int, spans: Int64s, escaped: Bytes) -> int:
    known = 0
    column = 1
    at = 0
    while at < content.size:
        quoted = content[at] == _QUOTE
        begin = at + quoted
        end, doubled = _end_of_quotes(content, begin) if quoted else (at, False)
        at = end
        while content[at] != separator and content[at] != _NEWLINE:
            at += 1
        if not quoted:
            end = at
            if content[at] == _NEWLINE and end > begin and content[end - 1] == _RETURN:
                end -= 1
        if column == number and end > begin:
            spans[known] = begin, end
            escaped[known] = doubled
            known += 1
        column = 1 if content[at] == _NEWLINE else column + 1
        at += 1
    return known


@kernel
def _end_of_quotes(content: Bytes, at: int) -> tuple[int, bool]:
    """Find where a quoted field ends, and whether two quotes stand for one in it."""
    doubled = False
    while content[at] != _NEWLINE:
        if content[at] == _QUOTE:
            if content[at + 1] != _QUOTE:
                break
            doubled = True
            at += 1
        at += 1
    return at, doubled


@kernel
def _mark_field(content: Bytes, wanted: Bytes, spans: Int64s, escaped: Bytes) -> int:
    known = 0
    depth = 0
    marked = False
    at = 0
    while at < content.size:
        byte = content[at]
        if byte == _NEWLINE:
            depth = 0
            marked = False
        elif byte in (_OPEN, _OPEN_LIST):
            depth += 1
        elif byte in (_CLOSE, _CLOSE_LIST):
            depth -= 1
        elif byte == _QUOTE:
            begin = at + 1
            at = _end_of_string(content, begin)
            value = _value_after(content, at)
            if depth == 1 and value > 0 and not marked and _equals(content, begin, at, wanted):
                begin, at = _scalar(content, value)
                if begin < at:
                    spans[known] = begin, at
                    escaped[known] = content[begin - 1] == _QUOTE and _has_escape(
                        content, begin, at
                    )
                    known += 1
                    marked = True
                at -= content[at] != _QUOTE
            elif content[at] == _NEWLINE:
                at -= 1
        at += 1
    return known


@kernel
def _end_of_string(content: Bytes, at: int) -> int:
    """The quote that ends a string; the newline of a line that is cut off."""
    while content[at] != _QUOTE and content[at] != _NEWLINE:
        at += 1 + (content[at] == _BACKSLASH and content[at + 1] != _NEWLINE)
    return at


@kernel
def _value_after(content: Bytes, at: int) -> int:
    """Find where the value begins if the string that ends here is a field's name, or 0."""
    if content[at] != _QUOTE:
        return 0
    at += 1
    while content[at] != _NEWLINE and _is_white(content[at]):
        at += 1
    if content[at] != _COLON:
        return 0
    at += 1
    while content[at] != _NEWLINE and _is_white(content[at]):
        at += 1
    return at


@kernel
def _equals(content: Bytes, begin: int, end: int, wanted: Bytes) -> bool:
    return end - begin == wanted.size and bool((content[begin:end] == wanted).all())


@kernel
def _has_escape(content: Bytes, begin: int, end: int) -> bool:
    return bool((content[begin:end] == _BACKSLASH).any())


@kernel
def _scalar(content: Bytes, at: int) -> tuple[int, int]:
    """Find where a text or number begins and ends; nothing for null, an object or a list."""
    first = content[at]
    if first == _QUOTE:
        end = _end_of_string(content, at + 1)
        return (at + 1 if content[end] == _QUOTE else end), end
    if first in (_NULL, _OPEN, _OPEN_LIST):
        return at, at
    end = at
    while content[end] != _COMMA and content[end] != _CLOSE and not _is_white(content[end]):
        end += 1
    return at, end
