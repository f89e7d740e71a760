"""The Prometheus rules as a PrometheusRule: `python deploy/prometheus_rule.py [--check]`.

Prometheus reads deploy/prometheus/rules/, its operator a resource that holds the same groups.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from docs.reference.write_or_check import write_or_check

_HERE = Path(__file__).resolve().parent
RULES = _HERE / "prometheus" / "rules"
MANIFEST = _HERE / "kubernetes" / "monitoring" / "prometheus-rule.yaml"
_HEAD = "# Made by deploy/prometheus_rule.py from deploy/prometheus/rules/: change those.\n"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that expressions stay readable."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def manifest() -> str:
    """The resource, as it should be."""
    groups: list[dict[str, Any]] = []
    for path in sorted(RULES.glob("*.yml")):
        groups += yaml.safe_load(path.read_text("utf-8"))["groups"]
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "unskew"},
        "spec": {"groups": groups},
    }
    return _HEAD + yaml.dump(resource, Dumper=_Dumper, sort_keys=False, width=1000)


def main(words: list[str]) -> int:
    """Write the resource, or check that it is fresh."""
    return write_or_check(words, lambda: {MANIFEST: manifest()}, "python deploy/prometheus_rule.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
