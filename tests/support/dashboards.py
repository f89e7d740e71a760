"""The committed dashboards, taken apart for the tests."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dashboards.__main__ import FOLDER
from unskew.jobs.observe.metrics import METRICS

Page = dict[str, Any]
UIDS = ("unskew-overview", "unskew-partitions")
SCRAPE = frozenset({"job", "instance"})
"""Labels that Prometheus adds to each sample it scrapes."""


def page(uid: str) -> Page:
    """A committed dashboard."""
    found: Page = json.loads((FOLDER / f"{uid}.json").read_text("utf-8"))
    return found


def panels(of: Page) -> list[Page]:
    """All panels but the rows' headings, also those inside folded rows."""
    listed = [panel for one in of["panels"] for panel in (one, *one.get("panels", ()))]
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
    for one in of["annotations"]["list"]:
        legend = f"{one['titleFormat']} {one['textFormat']}"
        yield Query(f"{of['uid']}: {one['name']}", one["expr"], legend, instant=False)


def variable(of: Page, name: str) -> Page:
    """A dashboard's variable."""
    (found,) = (one for one in of["templating"]["list"] if one["name"] == name)
    return dict(found)


def known() -> dict[str, frozenset[str]]:
    """The names and labels that Prometheus has of a job, from the table of metrics."""
    found = {}
    for metric in METRICS:
        labels = frozenset(metric.all_labels) | SCRAPE
        if metric.kind == "histogram":
            found[f"{metric.exported}_bucket"] = labels | {"le"}
            found[f"{metric.exported}_sum"] = found[f"{metric.exported}_count"] = labels
        else:
            found[metric.exported] = labels
    return found


def substituted(expression: str, values: dict[str, str]) -> str:
    """The expression with variables replaced as Grafana does it; an unknown name stays."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values.get(found[1], found[0]), expression)
