"""The answer as one self-contained page: tables and inline SVG, no script, nothing fetched."""

from collections.abc import Sequence
from dataclasses import fields
from html import escape

from unskew.grouping.simulation.batch_cost import Parts
from unskew.jobs.commands.prediction.answer import Answer
from unskew.jobs.observe.page.palette import write_css

_COLORS = {
    "fixed": "waiting",
    "read": "read",
    "route": "route",
    "move": "rest",
    "work": "work",
    "merge": "merge",
}
"""The colours of the parts, by their names in the live page's palette."""
_MEANING = {
    "fixed": "fixed",
    "read": "read and decode",
    "route": "route",
    "move": "move",
    "work": "slowest partition",
    "merge": "merge",
}
_LINES = ("key", "read", "routed")
_WIDTH = 860
_CHARACTER_WIDTH = 7
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>Unskew: {title}</title>
<style>
{palette}body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto;
  padding: 0 1em; color: var(--text); background: var(--card); }}
h1 {{ font-size: 1.4em; overflow-wrap: anywhere; }} h2 {{ font-size: 1.1em; margin-top: 2em; }}
.advice {{ font-size: 1.1em; background: var(--ground); border-left: 5px solid var(--routed);
  padding: .8em 1em; }}
table {{ border-collapse: collapse; }} .wide {{ overflow-x: auto; }}
td, th {{ padding: .2em .9em; text-align: right; border-bottom: 1px solid var(--line); }}
td:first-child, th:first-child {{ text-align: left; overflow-wrap: anywhere; min-width: 11em; }}
tr.chosen {{ font-weight: bold; background: var(--ground); }}
svg {{ max-width: 100%; height: auto; }} svg text {{ fill: var(--text); font-size: 13px; }}
svg path {{ stroke: var(--line); }} svg .knee {{ stroke: var(--muted); }}
@media (max-width: 700px) {{ td, th {{ padding: .2em .5em; font-size: .9em; }}
  svg {{ max-width: none; width: 640px; }} svg text {{ font-size: 15px; }} }}
{classes}.small {{ color: var(--muted); font-size: .9em; }}
</style></head><body>
<h1>{title}</h1>
<p class="advice">{advice}</p>
{notes}
<h2>A batch of {batch_records} records under each grouping</h2>
<div class="wide">{bars}</div>
{predictions}
<h2>The heaviest keys</h2>
{keys}
<p>{head}</p>
<h2>More partitions</h2>
<div class="wide">{curve}</div>
<p>{knee}</p>
<p class="small">{sampled}. Predicted by the cost model with the constants of {constants_of}.
Work: {cost} s a record, {setup} s a key that a task meets, {carried} bytes a partial result.</p>
</body></html>
"""


def make_page(answer: Answer) -> str:
    """Write the page's text."""
    sample, profile, work = answer.sample, answer.profile, answer.work
    return _PAGE.format(
        palette=write_css(),
        classes="".join(
            f"svg rect.{name} {{ fill: var(--{name}); }}"
            f" svg .line.{name} {{ stroke: var(--{name}); stroke-width: 3; fill: none; }}\n"
            for name in dict.fromkeys((*_COLORS.values(), *_LINES))
        ),
        title=escape(f"{sample.where}, {answer.partitions} partitions"),
        advice=escape(answer.advice),
        notes="".join(f"<p>{escape(note)}</p>" for note in answer.notes),
        batch_records=f"{answer.batch_records:,}",
        bars=_draw_bars(answer),
        predictions=_list_predictions(answer),
        keys=_list_keys(answer),
        head=(
            f"The head, keys of a fifth of a partition's share and more: {profile.head_keys:,} of"
            f" {profile.keys:,} keys with {profile.head_share:.1%} of the records. Between the"
            f" halves of the sample {profile.drift:.1%} of the records moved to other keys."
        ),
        curve=_draw_curve(answer),
        knee=_describe_knee(answer),
        sampled=f"{sample.hashes.size:,} of {sample.there:,} records were sampled",
        constants_of=escape(answer.constants_of),
        cost=f"{work.cost:.3g}",
        setup=f"{work.setup:.3g}",
        carried=f"{work.partial_bytes:,.0f}",
    )


def _draw_bars(answer: Answer) -> str:
    """A bar a grouping, of what its batches are made of."""
    left, height = 170, 24
    longest = max(each.seconds for each in answer.predictions)
    scale = (_WIDTH - left - 70) / longest
    total = height * len(answer.predictions) + 34
    parts = [_open_svg(total, "Predicted seconds of a batch by grouping")]
    for row, each in enumerate(answer.predictions):
        top, at = row * height, float(left)
        weight = "bold" if each.way == answer.chosen.way else "normal"
        parts.append(
            f'<text x="{left - 8}" y="{top + 16}" text-anchor="end" font-weight="{weight}">'
            f"{escape(each.way)}</text>"
        )
        for part in fields(Parts):
            width = getattr(each.parts, part.name) * scale
            parts.append(
                f'<rect x="{at:.1f}" y="{top + 3}" width="{width:.1f}" height="{height - 6}"'
                f' class="{_COLORS[part.name]}"/>'
            )
            at += width
        parts.append(f'<text x="{at + 6:.1f}" y="{top + 16}">{each.seconds:.2f} s</text>')
    x, y = left, total - 18
    for name, meaning in _MEANING.items():
        parts.append(f'<rect x="{x}" y="{y}" width="11" height="11" class="{_COLORS[name]}"/>')
        parts.append(_draw_label(x + 15, y + 10, meaning))
        x += 36 + _CHARACTER_WIDTH * len(meaning)
    return "".join([*parts, "</svg>"])


def _draw_curve(answer: Answer) -> str:
    """How many times faster a batch is with more partitions, by way; the knee is marked."""
    left, top, width, height = 60, 14, _WIDTH - 230, 260
    first, counts = answer.steps[0].seconds, [step.partitions for step in answer.steps]
    gains = {way: [first[way] / step.seconds[way] for step in answer.steps] for way in first}
    most = max(max(gain) for gain in gains.values())
    across = width / max(1, len(counts) - 1)
    parts = [_open_svg(height + top + 44, "Speed-up over the number of partitions")]
    for share in (0.0, 0.5, 1.0):
        y = top + height * (1 - share)
        parts.append(f'<path d="M{left} {y:.1f}H{left + width}"/>')
        parts.append(_draw_label(left - 8, y + 4, f"{share * most:.1f}x", "end"))
    for number, count in enumerate(counts):
        parts.append(_draw_label(left + number * across, top + height + 20, str(count), "middle"))
    parts.append(_draw_label(left + width / 2, top + height + 40, "partitions", "middle"))
    if answer.knee is not None:
        knee = left + counts.index(answer.knee) * across
        parts.append(
            f'<path class="knee" d="M{knee:.1f} {top}V{top + height}" stroke-dasharray="4 4"/>'
        )
        parts.append(_draw_label(knee + 5, top + 10, "enough"))
    for gain, color in zip(gains.values(), _LINES, strict=False):
        points = [
            f"{left + number * across:.1f},{top + height * (1 - value / most):.1f}"
            for number, value in enumerate(gain)
        ]
        parts.append(f'<polyline class="line {color}" points="{" ".join(points)}"/>')
    parts += _draw_legend(list(gains), left + width + 20, top)
    return "".join([*parts, "</svg>"])


def _describe_knee(answer: Answer) -> str:
    way = escape(answer.chosen.way)
    if answer.knee is None:
        return f"Each time twice the partitions make {way} more than a tenth faster."
    return f"From {answer.knee} partitions on, twice as many make {way} less than a tenth faster."


def _draw_legend(ways: Sequence[str], x: int, y: int) -> list[str]:
    parts = []
    for number, (way, color) in enumerate(zip(ways, _LINES, strict=False)):
        at = y + 10 + number * 20
        parts.append(f'<path class="line {color}" d="M{x} {at}h20"/>')
        parts.append(_draw_label(x + 26, at + 4, way))
    return parts


def _open_svg(height: int, label: str) -> str:
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
        f' height="{height}" font-family="system-ui, sans-serif">'
    )


def _draw_label(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _list_predictions(answer: Answer) -> str:
    heads = ("grouping", "batch s", "records/s", "max/mean", "pairs", "slowest s", "merge s")
    rows = []
    for each in answer.predictions:
        mark = ' class="chosen"' if each.way == answer.chosen.way else ""
        cells = (
            escape(each.way),
            f"{each.seconds:.2f}",
            f"{each.records_per_second:,.0f}",
            f"{each.max_over_mean:.2f}",
            f"{each.pairs:,.0f}",
            f"{each.parts.work:.2f}",
            f"{each.parts.merge:.2f}",
        )
        rows.append(f"<tr{mark}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return _make_table(heads, rows)


def _list_keys(answer: Answer) -> str:
    rows = []
    for name, key in zip(answer.key_names, answer.profile.heaviest, strict=True):
        cells = (
            escape(name),
            f"{key.records:,}",
            f"{key.share:.2%}",
            f"{key.share * answer.partitions:.0%}",
        )
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return _make_table(("key", "records", "share", "of a partition's share"), rows)


def _make_table(heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
