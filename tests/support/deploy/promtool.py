"""Prometheus rules read as data, and checked by promtool."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.support.running.programs import find_program
from unskew.jobs.observe.figures import METRICS
from unskew.jobs.observe.health import STATES

OF_EVERY_TARGET = {"job", "instance"}
OF_SOME_TARGETS = {"cluster", "namespace"}
"""Where Prometheus sees several clusters, or Kubernetes; elsewhere they are absent."""
_RESERVED = {"le"}
# What may stand in an expression without being a metric: functions, operators, words.
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_STRING = re.compile(r'"[^"]*"')
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")


def promtool(*words: object, folder: Path) -> tuple[int, str]:
    """Run it; exit code and all that it said."""
    done = subprocess.run(
        [find_program("promtool"), *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def rules_of(*files: Path) -> list[dict[str, Any]]:
    """All rules of these files."""
    return [
        rule
        for path in files
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


def exported() -> dict[str, set[str]]:
    """Every name that a job shows to Prometheus, with the labels that it has there."""
    metrics: dict[str, set[str]] = {}
    for metric in METRICS:
        labels = OF_EVERY_TARGET | OF_SOME_TARGETS | set(metric.all_labels)
        if metric.kind == "histogram":
            for end in ("bucket", "sum", "count"):
                metrics[f"{metric.exported}_{end}"] = labels | (
                    _RESERVED if end == "bucket" else set()
                )
        else:
            metrics[metric.exported] = labels
    return metrics


def unknown(rules: list[dict[str, Any]]) -> list[str]:
    """What expressions name that neither jobs export nor rules record."""
    recorded = {rule["record"]: rule["expr"] for rule in rules if "record" in rule}
    return [
        f"{rule.get('record') or rule['alert']}: {what}"
        for rule in rules
        for what in _unknown_in(rule["expr"], recorded)
    ]


def _unknown_in(expression: str, recorded: dict[str, str]) -> Iterator[str]:
    known = exported()
    bare = _STRING.sub('""', expression)
    names = {name for name in _NAME.findall(bare) if "unskew" in name}
    yield from (f"no metric {name}" for name in sorted(names - known.keys() - recorded.keys()))
    allowed = set().union(*(_labels_of(name, known, recorded) for name in names))
    for labels in _LABELS.findall(bare):
        asked = {label.strip() for label in labels.split(",") if label.strip()}
        yield from (f"no label {label}" for label in sorted(asked - allowed))
    for name, matchers in _SELECTOR.findall(expression):
        for label, value in _MATCHER.findall(matchers):
            if label not in _labels_of(name, known, recorded):
                yield f"no label {label} of {name}"
            elif label == "state" and value not in STATES:
                yield f"no state {value}"


def _labels_of(name: str, known: dict[str, set[str]], recorded: dict[str, str]) -> set[str]:
    if name in recorded:
        level = name.partition(":")[0]
        return set(level.split("_")) | OF_SOME_TARGETS
    return known.get(name, set())
