"""`compare --cost`: predicted batches of every way, and the sentence under them."""

import json

import pytest

from unskew.grouping.simulation.batch_cost import HASHED, LOCAL, WAYS, Prediction
from unskew.jobs.__main__ import main
from unskew.jobs.commands.simulation.prediction import advise


def predictions(pairs: dict[str, float] | None = None, **seconds: float) -> list[Prediction]:
    return [
        Prediction(way, value, value, 1.0, (pairs or {}).get(way, 100.0))
        for way, value in seconds.items()
    ]


@pytest.mark.parametrize(
    ("seconds", "begin"),
    [
        ({HASHED: 2.0, LOCAL: 2.1, "level": 1.95}, "You do not need Unskew for this job: by"),
        ({HASHED: 9.0, LOCAL: 2.0, "level": 1.95}, "Work where you read: with grouping local"),
        ({HASHED: 9.0, LOCAL: 6.0, "level": 2.0}, "Use level: a batch takes 2.00 s, by the key's"),
    ],
)
def test_the_advice_is_the_least_that_is_as_good_as_the_best(
    seconds: dict[str, float], begin: str
) -> None:
    assert advise(predictions(**seconds)).startswith(begin)


def test_of_ways_that_are_as_good_the_one_with_fewer_pairs_is_named() -> None:
    made = predictions({"shuffle": 900.0}, shuffle=2.0, level=2.05, none=9.0, local=8.0)

    assert advise(made).startswith("Use level: a batch takes 2.05 s")
    assert "by the key's hash 9.00 s (4.4x), at the source 8.00 s (3.9x)" in advise(made)


def test_every_way_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    trace = "zipf:z=1.4,keys=500,records=20000"
    asked = ("--partitions", "4", "--cost", "1ms", "--setup", "20ms", "--json")
    assert main(["compare", "--trace", trace, *asked]) == 0

    result = json.loads(capsys.readouterr().out)
    ways = {row["way"]: row for row in result["predictions"]}
    assert set(ways) == set(WAYS)
    seconds = [row["seconds"] for row in result["predictions"]]
    assert seconds == sorted(seconds)
    # 2000 records of 1 ms in four even partitions, and some keys at 20 ms each.
    assert ways["level"]["slowest"] > 0.5
    assert ways["level"]["slowest"] < ways[LOCAL]["slowest"]
    assert ways["level"]["pairs"] < ways[LOCAL]["pairs"]
    assert ways["level"]["slowest"] < ways[HASHED]["slowest"]
    assert result["advice"] == advise([Prediction(**row) for row in result["predictions"]])


def test_all_that_is_wrong_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ("--cost", "fast", "--setup", "3", "--slots", "none")
    assert main(["compare", "--trace", "zipf:z=x", "--partitions", "4", *wrong]) == 2

    lines = capsys.readouterr().err.splitlines()
    for option in ("trace", "--cost: ", "--setup: ", "--slots: a whole number from 1"):
        assert any(option in line for line in lines), (option, lines)

    assert main(["compare", "--trace", "zipf", "--partitions", "4", "--setup", "1ms"]) == 2
    assert "--cost: missing" in capsys.readouterr().err
