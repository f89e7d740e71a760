"""The committed dashboards, taken apart for the tests."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dashboards.__main__ import FOLDER
from unskew.jobs.observe.figures import METRICS

Page = dict[str, Any]
UIDS = ("unskew-overview", "unskew-partitions")
SCRAPE = frozenset({"job", "instance", "cluster"})
"""Labels that Prometheus adds to each sample it scrapes, the last one if its settings have it."""


def page(uid: str) -> Page:
    """Read a committed dashboard."""
    dashboard: Page = json.loads((FOLDER / f"{uid}.json").read_text("utf-8"))
    return dashboard


def panels(of: Page) -> list[Page]:
    """All panels but the rows' headings, also those inside folded rows."""
    listed = [panel for row in of["panels"] for panel in (row, *row.get("panels", ()))]
    return [panel for panel in listed if panel["type"] != "row"]


@dataclass(frozen=True)
class Query:
    """One query of a dashboard, and where it is."""

    where: str
    expression: str
    legend: str
    instant: bool


def queries(of: Page) -> Iterator[Query]:
    """Every query of a dashboard's panels."""
    for panel in panels(of):
        for target in panel["targets"]:
            where = f"{of['uid']}: {panel['title']}: {target['refId']}"
            legend = target.get("legendFormat", "")
            yield Query(where, target["expr"], legend, bool(target.get("instant")))


def annotations(of: Page) -> Iterator[Query]:
    """Every query of a dashboard's annotations."""
    for note in of["annotations"]["list"]:
        legend = f"{note['titleFormat']} {note['textFormat']}"
        yield Query(f"{of['uid']}: {note['name']}", note["expr"], legend, instant=False)


def variable(of: Page, name: str) -> Page:
    """Find a variable of a dashboard."""
    (match,) = (each for each in of["templating"]["list"] if each["name"] == name)
    return dict(match)


def known() -> dict[str, frozenset[str]]:
    """The names and labels that Prometheus has of a job, from the table of metrics."""
    labels_by_name = {}
    for metric in METRICS:
        labels = frozenset(metric.all_labels) | SCRAPE
        if metric.kind == "histogram":
            labels_by_name[f"{metric.exported}_bucket"] = labels | {"le"}
            labels_by_name[f"{metric.exported}_sum"] = labels_by_name[
                f"{metric.exported}_count"
            ] = labels
        else:
            labels_by_name[metric.exported] = labels
    return labels_by_name


def substituted(expression: str, values: dict[str, str]) -> str:
    """The expression with variables replaced as Grafana does it; an unknown name stays."""
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values.get(match[1], match[0]), expression)
