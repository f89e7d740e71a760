"""Totals of whole streaming jobs equal plain Python over the same records, for every window.

One window of each operator, also without a grouping, is in `tests/jobs/engine/test_matrix.py`.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import OPERATORS, START, WINDOWS, expected, records
from tests.support.running.in_process import Ran, utc, write_lines

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with utc():
        yield


# `paced` counts as `word_count` does.
PAIRS = [
    ("word_count", "none"),
    ("word_count", "sliding"),
    ("vwap", "none"),
    ("vwap", "tumbling"),
    ("hashtags", "tumbling"),
    ("hashtags", "sliding"),
]


@pytest.mark.parametrize(("operator", "window"), PAIRS)
def test_totals_are_those_of_plain_python(
    spark: SparkSession, tmp_path: Path, operator: str, window: str
) -> None:
    rows = records(7, 600)
    write_lines(tmp_path / "in", "1.json", rows[:400])
    write_lines(tmp_path / "in", "2.json", rows[400:])
    changes = {
        "operator": OPERATORS[operator],
        "window": WINDOWS[window],
        "lateness": None if window == "none" else "1 hour",
    }
    routed = Ran(spark, tmp_path, "routed", grouping={"type": "level"}, **changes)
    assert routed.last == expected(rows, operator, WINDOWS[window])


def test_late_rows_count_nowhere_and_alike(spark: SparkSession, tmp_path: Path) -> None:
    def trade(second: int, volume: int) -> dict[str, Any]:
        at = (START + timedelta(seconds=second)).isoformat()
        return {**records(1, 1)[0], "symbol": "S1", "volume": volume, "at": at}

    write_lines(tmp_path / "in", "1.json", [trade(0, 1), trade(10, 2), trade(100, 4)])
    write_lines(tmp_path / "in", "2.json", [trade(85, 8), trade(100, 16)])
    # By now the watermark is 12:01:30: of these, only the window of the third is open.
    write_lines(tmp_path / "in", "3.json", [trade(5, 32), trade(75, 64), trade(99, 128)])
    changes = {
        "operator": OPERATORS["vwap"],
        "window": WINDOWS["tumbling"],
        "lateness": "10 s",
    }
    by_grouping = {}
    for grouping in ("shuffle", "none"):
        ran = Ran(spark, tmp_path, grouping, grouping={"type": grouping}, **changes)
        late = sum(
            part["numRowsDroppedByWatermark"]
            for done in ran.batches
            for part in done.progress["stateOperators"]
        )
        by_grouping[grouping] = [ran.last, late]

    assert by_grouping["shuffle"] == by_grouping["none"]
    totals, late = by_grouping["shuffle"]
    assert late == 2
    volumes = {(key[0] - START).total_seconds(): row["volume"] for key, row in totals.items()}
    assert volumes == {0: 3, 80: 8 + 128, 100: 4 + 16}


def test_top_keeps_the_first_hashtags_of_each_whole_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = records(11, 300)
    end = {**rows[0], "hashtags": ["end"], "at": (START + timedelta(hours=1)).isoformat()}
    write_lines(tmp_path / "in", "1.json", rows[:150])
    write_lines(tmp_path / "in", "2.json", [*rows[150:], end])
    ran = Ran(
        spark,
        tmp_path,
        "top",
        operator={**OPERATORS["hashtags"], "top": 2},
        window=WINDOWS["sliding"],
        lateness="5 minutes",
        merge={"partitions": 2, "output": "append"},
    )

    whole = expected(rows, "hashtags", WINDOWS["sliding"])
    order = sorted(whole, key=lambda key: (key[0], -whole[key]["posts"], key[2]))
    kept: Counter[Any] = Counter()
    best = {}
    for key in order:
        kept[key[0]] += 1
        if kept[key[0]] <= 2:
            best[key] = whole[key]
    assert ran.last == best
    assert len(ran.rows) == len(best)
