"""Paper 001's figure 9: the d of D-Choices, and the least d that would do."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.balance import zipf_shares
from benchmarks.papers.definitions import Figures, Plot, Printed, Row, Run, Value
from unskew.grouping.parts.choices import solve_choices

KEYS, SOURCES = 10_000, 5
EPSILON, GRID_RECORDS = 1e-4, 2_000_000
GRIDS = {50: (2, 3, 4, 6, 8, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 49), 10: tuple(range(2, 10))}
ZIPFS = (1.2, 1.6, 2.0)
_WHERE = "section V, Q2"


def fixed_choices(grouping: str, n: int, z: float) -> Run:
    """The paper's stream, shorter."""
    return Run(
        grouping, f"zipf:z={z:g},keys={KEYS},records={GRID_RECORDS}", n, SOURCES, quick=500_000
    )


def solved(n: int, z: float) -> int:
    """The paper's d for the exact head."""
    shares = zipf_shares(z, KEYS)
    return min(n, solve_choices(shares[shares >= 1 / (5 * n)], n, EPSILON))


@dataclass(frozen=True)
class LeastChoices:
    """The least of some fixed d whose imbalance is that of W-Choices, or epsilon a source."""

    n: int
    z: float

    @property
    def runs(self) -> tuple[Run, ...]:
        """W-Choices and every d."""
        fixed = (fixed_choices(f"d_choices:choices={d}", self.n, self.z) for d in GRIDS[self.n])
        return (fixed_choices("w_choices", self.n, self.z), *fixed)

    def of(self, results: Mapping[Run, Figures]) -> float:
        """D."""
        reference, *fixed = (results[each]["imbalance"] for each in self.runs)
        enough = max(reference, SOURCES * EPSILON)
        fitting = (d for d, own in zip(GRIDS[self.n], fixed, strict=True) if own <= enough)
        return float(next(fitting, self.n))

    def shown(self, results: Mapping[Run, Figures]) -> tuple[Run, ...]:
        """The run with that d, and W-Choices."""
        least = f"d_choices:choices={self.of(results):.0f}"
        return tuple(each for each in self.runs if each.grouping in {least, "w_choices"})


def _rows(n: int, z: float) -> tuple[Row, ...]:
    exact = solved(n, z)
    return (
        Row(
            "fig. 9",
            f"least d that balances as well as W-Choices (to s x epsilon), n = {n}, z = {z:g};"
            f" the inequality's d is {exact}",
            Printed("slightly below the d of D-Choices", _WHERE, float(exact), "at most"),
            LeastChoices(n, z),
            "z = 1.2: the inequality gives too small a d, see fig. 10",
        ),
        Row(
            "fig. 9",
            f"the d that D-Choices has at the end, n = {n}, z = {z:g}",
            Printed("the inequality's, by the counted head", _WHERE, float(exact)),
            Value(fixed_choices("d_choices", n, z), "signals.head_choices"),
            "at the end of the stream SpaceSaving's guaranteed counts are below the exact ones",
        ),
    )


LEAST_ROWS = tuple(row for n in GRIDS for z in ZIPFS for row in _rows(n, z))
LEAST_PLOTS = tuple(
    Plot(
        f"001-fig9-n{n}",
        f"Fig. 9: d by skew, n = {n}",
        "z",
        "d",
        {
            "D-Choices": tuple(
                (z, Value(fixed_choices("d_choices", n, z), "signals.head_choices")) for z in ZIPFS
            ),
            "least that balances": tuple((z, LeastChoices(n, z)) for z in ZIPFS),
        },
        log=False,
    )
    for n in GRIDS
)
