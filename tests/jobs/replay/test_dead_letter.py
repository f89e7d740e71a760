"""Dead letters as lines of JSON, and the ledger of those that were replayed."""

from pathlib import Path

import pytest

from unskew.config.errors import ExternalError
from unskew.jobs.replay.dead_letter import Coordinates, DeadLetter, read_coordinates, to_millis
from unskew.jobs.replay.ledger import Ledger

WHERE = Coordinates("lines", 1, 7, 1_767_225_600_100)


@pytest.mark.parametrize(
    ("key", "value"), [(None, b"a word"), (b"k", None), ("ü".encode(), b"\xff\xfe"), (b"", b"")]
)
def test_key_value_and_coordinates_go_through_a_line(
    key: bytes | None, value: bytes | None
) -> None:
    made = DeadLetter("not_utf8", key, value, WHERE)
    assert DeadLetter.from_json(made.to_json(replayed=False)) == made


@pytest.mark.parametrize(
    "text",
    ["2026-01-01 00:00:00.1", "2026-01-01T00:00:00.100Z", "2026-01-01T01:00:00.100999+01:00"],
)
def test_times_are_as_spark_writes_them_in_topics_and_files(text: str) -> None:
    assert to_millis(text) == WHERE.timestamp_ms
    fields = {"topic": "lines", "partition": "1", "offset": "7", "timestamp": text}
    assert read_coordinates(fields) == WHERE


@pytest.mark.parametrize("change", [{"topic": None}, {"offset": "x"}, {"timestamp": "soon"}])
def test_what_is_no_record_of_a_source_has_no_coordinates(change: dict[str, object]) -> None:
    fields = {"topic": "lines", "partition": 1, "offset": 7, "timestamp": "2026-01-01"}
    assert read_coordinates({**fields, **change}) is None


def test_the_ledger_keeps_what_was_added(tmp_path: Path) -> None:
    first = Ledger(f"{tmp_path}/ledger")
    first.add([WHERE])
    first.add([WHERE._replace(offset=8)])
    again = Ledger(f"{tmp_path}/ledger/")
    assert WHERE in again
    assert WHERE._replace(offset=8) in again
    assert WHERE._replace(timestamp_ms=1) not in again, "a topic that was made again"
    # Two at once, where there are no locks: the second write fails.
    first.add([WHERE._replace(offset=9)])
    with pytest.raises(ExternalError, match="another replay writes to it"):
        again.add([WHERE])


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    Ledger(str(tmp_path)).add([WHERE])
    (file,) = tmp_path.iterdir()
    file.write_text("[[")
    with pytest.raises(ExternalError, match=f"{file}: cannot be read"):
        Ledger(str(tmp_path))
