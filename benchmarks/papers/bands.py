"""Where figures must lie in `make papers-quick`, whose streams are shorter than the page's.

At least one for each figure that a shorter stream can show. A band is there to see a grouping that
is broken, not a figure that differs from the paper's: it is around what the shorter stream gives.
"""

from dataclasses import replace

from benchmarks.papers.definitions import Paper

Band = tuple[float, float]

BANDS: dict[str, dict[tuple[str, str], Band]] = {
    "001": {
        ("fig. 1", "WP, PKG, n = 100: imbalance, percent"): (3.3, 4.1),
        ("fig. 1", "WP, W-Choices, n = 100: imbalance, percent"): (0.0, 0.1),
        ("fig. 1", "WP, D-Choices, n = 100: imbalance, percent"): (0.0, 0.1),
        ("fig. 5", "D-Choices, n = 100: measured pairs, percent of sum min(f, 2), worst skew"): (
            140.0,
            180.0,
        ),
        ("fig. 5", "W-Choices, n = 100: measured pairs, percent of sum min(f, 2), worst skew"): (
            140.0,
            180.0,
        ),
        ("fig. 7", "W-Choices, n = 50: imbalance at z = 2.0, worse of theta = 1/n and 1/8n"): (
            0.0,
            0.0001,
        ),
        ("fig. 10", "D-Choices, n = 5: worst imbalance of five skews"): (0.0, 0.0005),
        ("fig. 10", "D-Choices, n = 10: worst imbalance of five skews"): (0.0, 0.003),
        ("fig. 10", "D-Choices, n = 20: worst imbalance of five skews"): (0.0, 0.0005),
        ("fig. 10", "D-Choices, n = 50: worst imbalance of five skews"): (0.0, 0.0005),
        ("fig. 10", "D-Choices, n = 100: worst imbalance of five skews"): (0.0, 0.0005),
        ("fig. 10", "W-Choices: worst imbalance of five skews and 5 widths"): (0.0, 0.0001),
        ("fig. 10", "PKG: worst imbalance of five skews and 5 widths"): (0.28, 0.32),
        ("fig. 13", "throughput, W-Choices over PKG, best of z = 1.4, 1.7, 2.0"): (1.1, 1.5),
        ("fig. 13", "throughput, W-Choices over KG, best of z = 1.4, 1.7, 2.0"): (2.2, 3.0),
        ("fig. 13", "throughput, D-Choices over PKG, best of z = 1.4, 1.7, 2.0"): (1.1, 1.5),
        ("fig. 13", "throughput, D-Choices over KG, best of z = 1.4, 1.7, 2.0"): (2.2, 3.0),
        ("fig. 13", "throughput, W-Choices over SG, worst of the skews"): (0.97, 1.03),
        ("fig. 13", "throughput, D-Choices over SG, worst of the skews"): (0.97, 1.03),
        ("fig. 14", "p99 latency, saved by W-Choices over KG at z = 2.0, percent"): (90.0, 100.0),
        ("fig. 14", "p99 latency, saved by D-Choices over KG at z = 2.0, percent"): (90.0, 100.0),
        ("fig. 14", "mean latency of PKG, percent of KG's, z = 2.0"): (45.0, 55.0),
        ("fig. 14", "largest mean latency of a worker of PKG, percent of KG's, z = 2.0"): (
            45.0,
            55.0,
        ),
    },
    "000": {
        ("fig. 10", "execution time, FISH over SG, worst of all skews and workers"): (0.95, 1.1),
        (
            "fig. 16",
            "half of the workers twice as fast: time by records sent over time by waiting, best",
        ): (1.3, 1.7),
        ("fig. 17", "memory without the ring over with it, z = 1, a worker more"): (1.5, 2.3),
        ("fig. 17", "memory without the ring over with it, z = 1, a worker less"): (1.5, 2.3),
        ("fig. 19", "MT: throughput of FISH over SG's"): (0.9, 1.05),
        ("fig. 19", "AM: throughput of FISH over SG's"): (0.9, 1.05),
    },
    "002": {
        (
            "fig. 19",
            "TW: precision of the predictor, percent; really hot is a share of p / 40 (table I)",
        ): (90.0, 99.0),
        ("fig. 21", "TW: keys in the synopsis times p, p = 0.01"): (0.5, 2.0),
    },
    "003": {
        ("fig. 10", "PKG over KG at r = 60: throughput"): (1.4, 2.1),
        ("fig. 11", "DKG: standard deviation at r = 80, percent"): (9.0, 11.5),
        ("fig. 11", "PKG: standard deviation at r = 80, percent"): (14.0, 16.5),
        ("fig. 11", "KG: standard deviation at r = 80, percent"): (22.0, 26.0),
        ("fig. 12", "twitter-election, PKG's throughput at 100 workers over that at 10"): (
            0.95,
            1.05,
        ),
        ("fig. 13", "twitter-election, PKG's throughput with 20 sources over that with 5"): (
            0.9,
            1.1,
        ),
    },
    "004": {
        ("fig. 8", "speed-up with one instance"): (0.999, 1.001),
    },
}
"""By paper, and by figure and row."""


def with_bands(paper: Paper) -> Paper:
    """The paper, whose rows have their bands."""
    bands = BANDS.get(paper.key, {})
    rows = (replace(row, band=bands.get((row.figure, row.what))) for row in paper.rows)
    return replace(paper, rows=tuple(rows))
