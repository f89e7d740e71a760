"""Figures of runs, kept in a file until the code that they follow from changes.

A run is known by its name, in which all is that decides its figures but for code: of that, a digest
of the sources of its grouping and of the simulator is kept beside them. A run whose digest is
another's is measured again, all others are not. What a benchmark itself does to a stream is in
no digest: where that changes, start with an empty file (`--again`).
"""

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.papers.sources import digest_of

Figures = dict[str, float | list[float]]
_DIGITS = 7


class KeptFigures:
    """The runs of a file, one line of JSON each; without a path nothing is kept."""

    def __init__(self, path: Path | None = None, *, again: bool = False) -> None:
        self._path = path
        self._kept: dict[str, tuple[str, Figures]] = {}
        if path is not None and again:
            path.unlink(missing_ok=True)
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                name, digest, figures = json.loads(line)
                self._kept[name] = digest, figures

    def figures(self, grouping: str, run: str, measure: Callable[[], Figures]) -> Figures:
        """What is kept of a run of a grouping (with its options), or measured now and kept."""
        name, digest = f"{grouping} {run}", digest_of(grouping.partition(":")[0])
        kept = self._kept.get(name)
        if kept is None or kept[0] != digest:
            kept = digest, {each: _rounded(value) for each, value in measure().items()}
            self._kept[name] = kept
            if self._path is not None:
                # Of a run's lines the last counts.
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(_line(name, *kept))
        return kept[1]

    def tidy(self) -> None:
        """Write each run once, in the order of names."""
        if self._path is not None:
            beside = self._path.with_suffix(".part")
            lines = (_line(name, *self._kept[name]) for name in sorted(self._kept))
            beside.write_text("".join(lines), encoding="utf-8")
            beside.replace(self._path)


def _line(name: str, digest: str, figures: Figures) -> str:
    return json.dumps([name, digest, figures]) + "\n"


def _rounded(value: float | list[float]) -> float | list[float]:
    if isinstance(value, list):
        return [float(f"{each:.{_DIGITS}g}") for each in value]
    return value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}")
