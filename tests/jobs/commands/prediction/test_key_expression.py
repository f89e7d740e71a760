"""Key expressions that are evaluated without Spark, and those that are left to it."""

import pytest

from unskew.jobs.commands.prediction.key_expression import parse_key_expression
from unskew.jobs.kafka.newest_records import RawSample

VALUES: list[bytes | None] = [
    b'{"user": "ann", "n": 1.50, "deep": {"id": 7, "list": [1, "a"]}}',
    b'{"user": null, "n": true}',
    b"{",
    b"\xff",
    b"[1]",
    None,
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value", VALUES),
        (" Cast( value AS string )", VALUES),
        ("get_json_object(value, '$.user')", [b"ann", None, None, None, None, None]),
        ("get_json_object(cast(value as string), '$.n')", [b"1.50", b"true", *[None] * 4]),
        ("get_json_object(value, '$.deep.id')", [b"7", *[None] * 5]),
        ("get_json_object(value, '$.deep.list')", [b'[1,"a"]', *[None] * 5]),
        ("from_json(value, 'user STRING, n DOUBLE').user", [b"ann", *[None] * 5]),
    ],
)
def test_a_simple_expression_is_evaluated(text: str, expected: list[bytes | None]) -> None:
    expression = parse_key_expression(text)

    assert expression is not None
    assert list(expression.evaluate(RawSample([b"k"] * len(VALUES), VALUES))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "upper(value)",
        "from_json(value, 'user STRING, n DOUBLE').n",
        "from_json(value, 'user STRING').nobody",
        "get_json_object(value, '$.list[0]')",
        "value || key",
        "valu",
        "",
    ],
)
def test_what_has_more_than_one_meaning_is_left_to_spark(text: str) -> None:
    assert parse_key_expression(text) is None
