"""Where figures must lie in `make papers-quick`, whose streams are shorter than the page's.

`bands.csv` has at least one for each figure that a shorter stream can show. A band is there to see
a grouping that is broken, not a figure that differs from the paper's: it is around what the shorter
stream gives.
"""

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

from benchmarks.papers.definitions import Paper

_PATH = Path(__file__).with_name("bands.csv")


@cache
def read_bands() -> dict[tuple[str, str, str], tuple[float, float]]:
    """By paper, figure and row: the least and the most."""
    with _PATH.open(encoding="utf-8", newline="") as file:
        return {
            (line["paper"], line["figure"], line["row"]): (
                float(line["least"]),
                float(line["most"]),
            )
            for line in csv.DictReader(file)
        }


def with_bands(paper: Paper) -> Paper:
    """The paper, whose rows have their bands."""
    rows = (
        replace(row, band=read_bands().get((paper.key, row.figure, row.what))) for row in paper.rows
    )
    return replace(paper, rows=tuple(rows))
