"""Lines over one axis as SVG: no library, so that the same figures give the same bytes."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.papers.definitions import Plot, Results
from unskew.jobs.observe.batches.batch_time import MERGE, READ, ROUTE
from unskew.jobs.observe.page.palette import LIGHT

_NAMES = (READ, "good", MERGE, "alarm", ROUTE, "muted", "routed", "key", "key-2", "mark")
COLORS = tuple(LIGHT[name] for name in _NAMES)
"""Those of the palette that can be told apart as lines."""
_WIDTH, _HEIGHT = 860, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 590, 40, 330
_FLOOR = 1e-9
_SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    f' width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">'
)
_TICKS = 5
_LEAST_SPAN = 0.05


class _Axis:
    """From values to pixels."""

    def __init__(self, values: Sequence[float], begin: int, end: int, *, log: bool) -> None:
        self._log = log
        scaled = [self._scale(value) for value in values]
        low, high = min(scaled), max(scaled)
        # What differs by less than its ticks could say is drawn as nearly flat.
        least = _LEAST_SPAN * max(abs(low), abs(high)) or 1.0
        if high - low < least:
            middle = (low + high) / 2
            low, high = middle - least / 2, middle + least / 2
        self._low, self._high, self._begin, self._end = low, high, begin, end

    def at(self, value: float) -> float:
        share = (self._scale(value) - self._low) / (self._high - self._low)
        return round(self._begin + share * (self._end - self._begin), 1)

    def ticks(self) -> Iterator[float]:
        if self._log:
            decades = max(1, math.ceil((self._high - self._low) / _TICKS))
            yield from (
                10.0**n for n in range(math.ceil(self._low), math.floor(self._high) + 1, decades)
            )
            return
        step = _round_step((self._high - self._low) / _TICKS)
        first = math.ceil(self._low / step)
        for number in range(first, math.floor(self._high / step + 1e-9) + 1):
            yield number * step

    def _scale(self, value: float) -> float:
        return math.log10(max(value, _FLOOR)) if self._log else value


def draw(plot: Plot, results: Results) -> str:
    """Draw the picture."""
    lines = {
        label: [(x, measure.of(results)) for x, measure in points]
        for label, points in plot.lines.items()
    }
    across = _Axis([x for points in lines.values() for x, _ in points], _LEFT, _RIGHT, log=False)
    heights = [y for points in lines.values() for _, y in points]
    # Within two decades even steps are easier to read.
    log = plot.log and max(heights) > 100 * max(min(heights), _FLOOR)
    up = _Axis(heights, _BOTTOM, _TOP, log=log)
    parts = [
        _SVG,
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="{LIGHT["card"]}"/>',
        _text(_LEFT, 22, plot.title, bold=True),
        *_grid(across, up),
        _text((_LEFT + _RIGHT) / 2, _HEIGHT - 12, plot.x, "middle"),
        _text(_LEFT, _TOP - 5, plot.y),
    ]
    for number, (label, points) in enumerate(lines.items()):
        parts.extend(_line(number, label, [(across.at(x), up.at(y)) for x, y in points]))
    return "\n".join([*parts, "</svg>"]) + "\n"


def number_text(value: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    for value in up.ticks():
        y = up.at(value)
        yield f'<path d="M{_LEFT} {y}H{_RIGHT}" stroke="{LIGHT["line"]}"/>'
        yield _text(_LEFT - 6, y + 4, number_text(value), "end")
    for value in across.ticks():
        x = across.at(value)
        yield f'<path d="M{x} {_BOTTOM}v5" stroke="{LIGHT["muted"]}"/>'
        yield _text(x, _BOTTOM + 18, number_text(value), "middle")
    yield f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" stroke="{LIGHT["muted"]}" fill="none"/>'


def _line(number: int, label: str, points: Sequence[tuple[float, float]]) -> Iterator[str]:
    color = COLORS[number % len(COLORS)]
    # Lines that lie on each other stay visible: the later ones are dashed.
    dash = "" if number % 3 == 0 else f' stroke-dasharray="{2 + 3 * (number % 3)} 3"'
    path = " ".join(f"{x},{y}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>'
    yield from (f'<circle cx="{x}" cy="{y}" r="2.5" fill="{color}"/>' for x, y in points)
    y = _TOP + 8 + 20 * number
    yield f'<path d="M{_RIGHT + 12} {y}h22" stroke="{color}" stroke-width="2"{dash}/>'
    yield _text(_RIGHT + 40, y + 4, label)


def _text(x: float, y: float, words: str, anchor: str = "start", *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight} fill="{LIGHT["text"]}">'
        f"{escape(words)}</text>"
    )


def _round_step(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= step - 1e-12)
