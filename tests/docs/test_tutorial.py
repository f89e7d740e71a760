"""docs/tutorial.md, typed in from top to bottom by a user with an empty folder."""

import json
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.blocks import blocks
from tests.support.shell import Shell

TYPO = "revenue: sum(amuont)"


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.slow
def test_the_tutorial_from_top_to_bottom(root: Path, tmp_path: Path) -> None:
    page = root / "docs" / "tutorial.md"
    shell = Shell(tmp_path)
    for block in blocks(page):
        if block.name:
            (tmp_path / block.name).write_text(block.text)
    lines = "".join(block.text for block in blocks(page, "sh")).splitlines()
    outputs = {line: shell.type(f"{line} 2>&1") for line in lines}
    assert outputs["unskew lint totals.yaml"].startswith("ok totals.yaml: ")
    assert outputs["unskew lint score.yaml"].startswith("ok score.yaml: ")
    events = [
        json.loads(line)
        for file in sorted((tmp_path / "events").iterdir())
        for line in file.read_text().splitlines()
    ]
    check_totals(tmp_path / "results", events)
    assert '"events"' in outputs["""cat results/by_user/*/part-*.json | grep '"bot"'"""]
    assert "as expected" in outputs["unskew test score.yaml --write"]
    assert "partial results merge" in outputs["unskew test score.yaml --write"]
    assert "Take grouping level," in outputs["unskew compare score.yaml"]
    logs = [text for line, text in outputs.items() if "run score" in line]
    check_seconds(page, *logs)
    check_typo(page, tmp_path, shell)


def read(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The results of complete windows, by minute and key."""
    rows = {}
    for file in folder.rglob("part-*.json"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            minute = row.pop("window_start")[11:16]
            row.pop("window_end")
            rows[minute, row.pop(next(iter(row)))] = row
    return rows


def check_totals(results: Path, events: list[dict[str, Any]]) -> None:
    by_user, by_country = defaultdict(list), defaultdict(list)
    minutes = sorted({event["ts"][11:16] for event in events})[:-1]
    for event in events:
        if (minute := event["ts"][11:16]) in minutes:
            by_user[minute, event["user_id"]].append(Decimal(event["amount"]))
            by_country[minute, event["country"]].append(event)
    assert {key: list(row.values()) for key, row in read(results / "by_user").items()} == {
        key: [len(amounts), float(sum(amounts)), float(max(amounts))]
        for key, amounts in by_user.items()
    }
    countries = read(results / "by_country")
    assert countries.keys() == by_country.keys()
    for key, group in by_country.items():
        latencies = np.array([event["latency_ms"] for event in group])
        assert abs((latencies < countries[key]["latency"]).mean() - 0.99) < 0.0134
        users = len({event["user_id"] for event in group})
        assert countries[key]["users"] == pytest.approx(users, rel=0.08)


def check_seconds(page: Path, at_source: str, under_key: str, under_level: str) -> None:
    """The log has the figures that the page speaks of, and they say what it says of them."""
    (head,) = [line for line in page.read_text("utf-8").splitlines() if "`seconds` |" in line]
    names = re.findall(r"`(\w+)`", head)
    local, key, level = (
        [
            {name: float(re.findall(rf" {name}=(\S+)", line)[0]) for name in names}
            for line in log.splitlines()
            if "records=20000" in line
        ]
        for log in (at_source, under_key, under_level)
    )
    assert len(local) == len(key) == len(level) == 4
    assert {batch["max_over_mean"] for batch in level} == {1.0}
    assert all(batch["max_over_mean"] > 4 for batch in key)
    slowest = [sum(each["slowest_busy_seconds"] for each in run[1:]) for run in (local, key, level)]
    assert slowest[0] > 1.3 * slowest[2]
    assert slowest[1] > 1.3 * slowest[2]
    print(*(run[-1] for run in (local, key, level)), sep="\n")  # for the page's table


def check_typo(page: Path, folder: Path, shell: Shell) -> None:
    """A mistake is printed as the page shows it."""
    job = folder / "totals.yaml"
    job.write_text(job.read_text().replace("revenue: sum(amount)", TYPO))
    (shown,) = blocks(page, "text")
    assert shell.type("unskew lint totals.yaml 2> problems || true") == shown.text
