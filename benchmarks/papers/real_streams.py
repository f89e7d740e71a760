"""The papers' real streams: what stands in for each, and how a reader puts the real one there."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from benchmarks.papers.definitions import Paper, Run


def parse_real(papers: Sequence[Paper], words: Sequence[str]) -> dict[str, dict[str, str]]:
    """From `PAPER.STREAM=SPEC`: by paper the trace for each stand-in; every problem is said."""
    chosen: dict[str, dict[str, str]] = {}
    problems = []
    known = {f"{paper.key}.{each.name}": (paper, each) for paper in papers for each in paper.real}
    for word in words:
        name, equals, spec = word.partition("=")
        if name not in known:
            problems.append(f"--real {name}: one of {', '.join(known)}")
        elif not (equals and spec):
            problems.append(f"--real {name}: {name}=SPEC with a trace of `unskew simulate`")
        else:
            paper, stream = known[name]
            traces = map(_without_records, (stream.stand_in, *stream.also))
            chosen.setdefault(paper.key, {}).update(dict.fromkeys(traces, spec))
    if problems:
        raise ValueError("\n".join(problems))
    return chosen


def with_real(papers: Sequence[Paper], chosen: Mapping[str, Mapping[str, str]]) -> list[Paper]:
    """The papers that have such a stream, with it in the place of what stands in for it."""
    return [_replaced(paper, chosen[paper.key]) for paper in papers if paper.key in chosen]


def _without_records(trace: str) -> str:
    return re.sub(r",?records=\d+", "", trace)


def _replaced(value: Any, traces: Mapping[str, str]) -> Any:
    if isinstance(value, Run):
        return replace(value, trace=traces.get(_without_records(value.trace), value.trace))
    if isinstance(value, tuple):
        return tuple(_replaced(each, traces) for each in value)
    if isinstance(value, dict):
        return {name: _replaced(each, traces) for name, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        return replace(value, **{name: _replaced(part, traces) for name, part in parts.items()})
    return value
