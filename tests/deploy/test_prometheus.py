"""Rules and alerts: promtool accepts them, each fires and does not, and all they name is there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.deploy.promtool import (
    OF_EVERY_TARGET,
    OF_SOME_TARGETS,
    promtool,
    rules_of,
    unknown,
)

SEVERITIES = {"warning", "critical"}
WHATEVER_THE_INSTANCE = {
    "UnskewRoutingStateUnreadable",
    "UnskewStateGrows",
    "UnskewQueryDown",
    "UnskewQueryGone",
    "UnskewQueryRestarts",
}
"""A start may be another instance: these must still be one alert, which goes on."""


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "deploy" / "prometheus"


@pytest.fixture
def rules(folder: Path) -> list[dict[str, Any]]:
    return rules_of(*sorted((folder / "rules").glob("*.yml")))


@pytest.fixture
def alerts(rules: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    alerting = [rule for rule in rules if "alert" in rule]
    assert len({rule["alert"] for rule in alerting}) == len(alerting)
    return {rule["alert"]: rule for rule in alerting}


def cases(folder: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """What the unit tests expect of each alert, case by case."""
    groups: dict[str, list[list[dict[str, Any]]]] = {}
    for path in (folder / "tests").glob("*.yml"):
        for test in yaml.safe_load(path.read_text())["tests"]:
            for case in test.get("alert_rule_test", ()):
                groups.setdefault(case["alertname"], []).append(case["exp_alerts"])
    return groups


def test_promtool_accepts_the_rules(folder: Path) -> None:
    code, output = promtool("check", "rules", *sorted((folder / "rules").glob("*")), folder=folder)
    assert code == 0, output


@pytest.mark.slow
def test_promtool_finds_every_expectation_met(folder: Path) -> None:
    code, output = promtool("test", "rules", *sorted((folder / "tests").glob("*")), folder=folder)
    assert code == 0, output


@pytest.mark.parametrize(
    ("good", "broken", "says"),
    [
        ("rate(unskew_records_total[5m])", "rat(unskew_records_total[5m])", "unknown function"),
        ("rate(unskew_records_total[5m])", "rate(unskew_records_total)", "expected type range"),
        ("expr: sum by", "exp: sum by", "field exp not found"),
        ("(unskew_partition_batch_busy_seconds)", "(unskew_x", "unclosed left parenthesis"),
    ],
)
def test_promtool_rejects_rules_with_a_typo(
    folder: Path, tmp_path: Path, good: str, broken: str, says: str
) -> None:
    text = (folder / "rules" / "recording.yml").read_text()
    assert good in text
    (tmp_path / "rules.yml").write_text(text.replace(good, broken, 1))
    code, output = promtool("check", "rules", "rules.yml", folder=tmp_path)
    assert code != 0
    assert says in output


@pytest.mark.parametrize(
    ("name", "good", "broken"),
    [
        # An alert that does not fire is expected, and one that does is not.
        (
            "rules/alerts.yml",
            'state="stalled"} == 1\n        for',
            'state="stalled"} == 2\n        for',
        ),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("rules/alerts.yml", "- 1 > 3", "- 1 > 0"),
                ("rules/alerts.yml", "severity: critical", "severity: warning"),
                ("tests/query.yml", "started again 4 times", "started again 5 times"),
            )
        ),
    ],
)
def test_promtool_rejects_an_expectation_that_is_not_met(
    folder: Path, tmp_path: Path, name: str, good: str, broken: str
) -> None:
    for path in (*folder.glob("rules/*"), *folder.glob("tests/*")):
        copy = tmp_path / path.relative_to(folder)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    text = (tmp_path / name).read_text()
    assert good in text
    (tmp_path / name).write_text(text.replace(good, broken))
    code, output = promtool("test", "rules", "tests/query.yml", folder=tmp_path)
    assert code != 0
    assert "exp:[" in output


def test_every_alert_is_seen_to_fire_and_not_to_fire(
    folder: Path, alerts: dict[str, dict[str, Any]]
) -> None:
    groups = cases(folder)
    assert set(groups) == set(alerts)
    assert [name for name in alerts if not any(groups[name])] == []
    assert [name for name in alerts if all(groups[name])] == []


def test_every_alert_says_whose_it_is(folder: Path) -> None:
    for name, expected in cases(folder).items():
        for alert in (alert for case in expected for alert in case):
            labels = set(alert["exp_labels"])
            if name in WHATEVER_THE_INSTANCE:
                assert labels - OF_SOME_TARGETS == {"job", "query", "severity"}, name
            else:
                assert labels >= OF_EVERY_TARGET | {"query", "severity"}, name


def test_every_metric_and_label_of_the_rules_is_exported(rules: list[dict[str, Any]]) -> None:
    assert unknown(rules) == []


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("unskew_record_total > 0", "no metric unskew_record_total"),
        ("rate(unskew_batch_seconds[5m])", "no metric unskew_batch_seconds"),
        ("sum by (topic) (unskew_batch_records)", "no label topic"),
        ('unskew_batch_records{partition="0"}', "no label partition of unskew_batch_records"),
        ('unskew_query_state{state="dead"} == 1', "no state dead"),
    ],
)
def test_a_name_that_no_job_exports_is_rejected(expression: str, says: str) -> None:
    assert unknown([{"alert": "Broken", "expr": expression}]) == [f"Broken: {says}"]


def test_recording_rules_keep_the_labels_of_their_names(rules: list[dict[str, Any]]) -> None:
    recorded = [rule for rule in rules if "record" in rule]
    for rule in recorded:
        named = re.fullmatch(r"job(_instance)?_query:unskew_\w+:\w+", rule["record"])
        assert named, rule["record"]
        kept = {"job", "query", *(["instance"] if named[1] else []), *OF_SOME_TARGETS}
        for labels in re.findall(r"by \(([^)]*)\)", rule["expr"]):
            assert kept <= set(labels.split(", ")), rule["record"]
    assert len({rule["record"] for rule in recorded}) == len(recorded)


def test_no_rule_joins_jobs_of_two_clusters(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        for labels in re.findall(r"(?:by|on) \(([^)]*)\)", rule["expr"]):
            assert set(labels.split(", ")) >= OF_SOME_TARGETS, rule


def test_alerts_say_what_happened_with_its_value(alerts: dict[str, dict[str, Any]]) -> None:
    for name, alert in alerts.items():
        notes = alert["annotations"]
        assert set(notes) == {"summary", "description", "runbook"}, name
        assert alert["labels"]["severity"] in SEVERITIES, name
        assert "$value" in notes["description"], name
        of_one = name not in WHATEVER_THE_INSTANCE
        assert ("$labels.instance" in notes["description"]) == of_one, name
        assert notes["summary"].startswith("{{ $labels.query }}: "), name
        assert notes["runbook"] == f"docs/operating.md#{name.lower()}"


def test_every_alert_has_its_runbook_and_every_runbook_its_alert(
    root: Path, alerts: dict[str, dict[str, Any]]
) -> None:
    page = (root / "docs" / "operating.md").read_text()
    runbooks = page.split("\n## Runbooks\n")[1].split("\n## ")[0]
    sections = re.split(r"^### ", runbooks, flags=re.MULTILINE)[1:]
    texts = {text.split("\n", 1)[0]: text for text in sections}
    assert list(texts) == list(alerts)
    for name, text in texts.items():
        assert f"({alerts[name]['labels']['severity']})" in text, name
        parts = ("**Means.**", "**See it.**", "**Do.**")
        assert [part for part in parts if part not in text] == [], name
