"""The committed dashboards are fresh, and ask for nothing that a job does not export."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.__main__ import FOLDER, main, pages
from tests.support.displays.dashboards import (
    UIDS,
    Query,
    annotations,
    known,
    page,
    panels,
    queries,
    substituted,
    variable,
)
from tests.support.displays.promql import labels_left

LEGEND = re.compile(r"\{\{(\w+)\}\}")
INTERVALS = {"__rate_interval": "1m", "__range": "30m"}
every_page = pytest.mark.parametrize("uid", UIDS)


def check(query: Query) -> None:
    """ValueError if a query or its legend names what there is not."""
    expression = substituted(
        query.expression, {**INTERVALS, "cluster": "", "job": "a", "instance": "b"}
    )
    if "$__" in expression:
        raise ValueError(f"unknown variable in {expression}")
    missing = set(LEGEND.findall(query.legend)) - labels_left(expression, known())
    if missing:
        raise ValueError(f"the legend's {missing} are no labels of {expression}")


def test_the_committed_files_are_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(pages()) == sorted(FOLDER.glob("*.json"))
    assert main(["--check"]) == 0
    monkeypatch.setattr("dashboards.__main__.FOLDER", tmp_path)
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert main(["--check"]) == 0
    (tmp_path / f"{UIDS[0]}.json").write_text("{}")
    assert main(["--check"]) == 1
    assert main(["--chekc"]) == 2


@every_page
def test_queries_use_only_metrics_and_labels_that_exist(uid: str) -> None:
    expressions = [*queries(page(uid)), *annotations(page(uid))]
    assert len(expressions) > 20
    for query in expressions:
        check(query)


@pytest.mark.parametrize(
    ("expression", "legend"),
    [
        ("unskew_partition_record_total", ""),
        ("unskew_batch_seconds", ""),
        ('unskew_records_total{queyr="a"}', ""),
        ('sum by (topic) (rate(unskew_records_total{query="a"}[1m]))', ""),
        ("sum by (query) (unskew_hot_keys)", "{{partition}}"),
        ("histogram_quantile(0.9, sum by (query) (rate(unskew_batch_seconds_bucket[1m])))", ""),
        ("sum(unskew_batch_records) / unskew_batch_records", ""),
        ("sum by (query) (unskew_hot_keys) / sum by (query, instance) (unskew_hot_keys)", ""),
        ('label_replace(unskew_hot_keys, "a", "0$1", "partition", "(.)")', ""),
        ("rats(unskew_records_total[1m])", ""),
        ("sum(rate(unskew_records_total[$__no_interval]))", ""),
        ("sum(unskew_hot_keys))", ""),
        ("sum(unskew_hot_keys", ""),
    ],
)
def test_a_query_that_cannot_work_is_rejected(expression: str, legend: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check(Query("broken", expression, legend, instant=False))


@every_page
def test_every_panel_says_what_it_shows(uid: str) -> None:
    for panel in panels(page(uid)):
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["targets"], panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        units = defaults.get("unit") or panel["options"].get("cellValues", {}).get("unit")
        assert units or panel["type"] == "table", panel["title"]


@every_page
def test_everything_asks_the_data_source_that_was_chosen(uid: str) -> None:
    dashboard = page(uid)
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert variable(dashboard, "datasource")["query"] == "prometheus"
    for panel in panels(dashboard):
        assert panel["datasource"] == chosen, panel["title"]
        assert [item["datasource"] for item in panel["targets"]] == [chosen] * len(panel["targets"])
    asked = [
        *dashboard["annotations"]["list"],
        variable(dashboard, "cluster"),
        variable(dashboard, "job"),
        variable(dashboard, "instance"),
    ]
    assert [item["datasource"] for item in asked] == [chosen] * len(asked)


@every_page
def test_every_query_is_of_the_chosen_jobs_and_instances(uid: str) -> None:
    for query in (*queries(page(uid)), *annotations(page(uid))):
        selectors = re.findall(r"unskew_\w+(\{[^}]*\})?", query.expression)
        assert selectors, query
        for selector in selectors:
            assert 'cluster="$cluster",query=~"$job",instance=~"$instance"' in selector, query


@every_page
def test_variables_are_found_in_labels_that_exist(uid: str) -> None:
    for name in ("cluster", "job", "instance"):
        selected = variable(page(uid), name)
        asked = re.fullmatch(r"label_values\((.*), (\w+)\)", selected["query"]["query"])
        assert asked, name
        assert selected["definition"] == selected["query"]["query"]
        assert asked[2] in labels_left(asked[1], known())


@every_page
def test_panels_neither_overlap_nor_share_a_number(uid: str) -> None:
    dashboard = page(uid)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    positions = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(first["x"] + first["w"] <= 24 for first in positions)
    for first, other in itertools.combinations(positions, 2):
        beside = first["x"] + first["w"] <= other["x"] or other["x"] + other["w"] <= first["x"]
        above = first["y"] + first["h"] <= other["y"] or other["y"] + other["h"] <= first["y"]
        assert beside or above, (first, other)


def test_links_lead_to_the_other_dashboard_with_its_variables() -> None:
    for uid in UIDS:
        dashboard = page(uid)
        assert dashboard["uid"] == uid
        targets = re.findall(r'"url": "/d/([\w-]+)', json.dumps(dashboard))
        assert set(targets) == set(UIDS) - {uid}
        named = re.findall(r"var-(\w+)=|\$\{(\w+):queryparam\}", json.dumps(dashboard))
        for name in filter(None, itertools.chain(*named)):
            for other in UIDS:
                assert variable(page(other), name)
        assert all(link["keepTime"] and link["includeVars"] for link in dashboard["links"])


@every_page
def test_fields_have_the_types_of_the_schema(uid: str) -> None:
    """What the schema's own model reads and writes again is the same, so nothing is misspelt."""
    dashboard = page(uid)
    again = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
    for item in (*again["links"], *again["annotations"]["list"]):
        item.pop("placement", None)
    assert again == dashboard
    assert [
        where for where, value in _leaves(dashboard) if value is None and where != "value"
    ] == []


def _leaves(node: Any, name: str = "") -> list[tuple[str, Any]]:
    """Every value that holds no others, with its name; the first threshold's value is none."""
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in _leaves(value, key)]
    if isinstance(node, list):
        return [leaf for value in node for leaf in _leaves(value, name)]
    return [(name, node)]
