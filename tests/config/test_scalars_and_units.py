"""YAML 1.2 scalars, durations and sizes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from unskew.config.types.units import ByteSize, Duration
from unskew.grouping.options.scalars import ScalarError, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("nUll", "nUll"),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("On", "On"),
        ("n", "n"),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e-4", 0.0001),
        ("1E5", 100_000.0),
        ("-.inf", -math.inf),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("\u0663", "\u0663"),
        ("=", "="),
    ],
)
def test_plain_scalar(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_not_a_number_is_one_float() -> None:
    assert math.isnan(float(str(resolve(".nan"))))


@pytest.mark.parametrize("text", ["010", "-007", "00", "1" * 500, "1." + "0" * 500])
def test_ambiguous_or_endless_number_is_refused(text: str) -> None:
    with pytest.raises(ScalarError):
        resolve(text)


@pytest.mark.parametrize(
    ("text", "microseconds", "printed"),
    [
        ("10 s", 10_000_000, "10 s"),
        ("10s", 10_000_000, "10 s"),
        ("5 minutes", 300_000_000, "5 min"),
        ("1.5 h", 5_400_000_000, "90 min"),
        ("1500 ms", 1_500_000, "1500 ms"),
        ("0.25 ms", 250, "250 us"),
        ("100 µs", 100, "100 us"),
        ("1 day", 86_400_000_000, "1 d"),
        ("0 h", 0, "0 s"),
    ],
)
def test_duration(text: str, microseconds: int, printed: str) -> None:
    duration = Duration.parse(text)

    assert duration.microseconds == microseconds
    assert str(duration) == printed
    assert duration.interval == f"{microseconds} microseconds"
    assert duration.seconds == microseconds / 1e6


@pytest.mark.parametrize(
    ("text", "size", "printed"),
    [
        ("64 MiB", 67_108_864, "64 MiB"),
        ("1 GB", 1_000_000_000, "1 GB"),
        ("1.5 KiB", 1536, "1536 B"),
        ("12 bytes", 12, "12 B"),
        ("0 B", 0, "0 B"),
    ],
)
def test_size(text: str, size: int, printed: str) -> None:
    assert ByteSize.parse(text).bytes == size
    assert str(ByteSize.parse(text)) == printed


@pytest.mark.parametrize(
    "text", ["", "10", "s", "10  s", " 10 s", "1e3 s", "10 S", "-1 s", "\u0661 s"]
)
def test_not_a_duration(text: str) -> None:
    with pytest.raises(PydanticCustomError):
        Duration.parse(text)


@given(st.integers(0, Duration.AMOUNT_MAX))
def test_printed_duration_is_read_as_the_same(microseconds: int) -> None:
    assert Duration.parse(str(Duration(microseconds))) == Duration(microseconds)


@given(st.integers(0, ByteSize.AMOUNT_MAX))
def test_printed_size_is_read_as_the_same(size: int) -> None:
    assert ByteSize.parse(str(ByteSize(size))) == ByteSize(size)
