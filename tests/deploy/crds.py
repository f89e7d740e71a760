"""Schemas of the operators' resources: `python -m tests.deploy.crds` takes them from Go's modules.

They are kept in schemas/ without prose, so that tests need no Go. The API server only drops fields
that a schema does not know; here they are errors.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import yaml

SCHEMAS = Path(__file__).parent / "schemas"
SOURCES = {
    "SparkApplication": (
        "github.com/kubeflow/spark-operator/v2@v2.4.0",
        "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml",
        "v1beta2",
    ),
    "ServiceMonitor": (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        "v1",
    ),
    "PrometheusRule": (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        "v1",
    ),
}


def problems(resource: dict[str, Any]) -> list[str]:
    """What a strict reader of the resource's schema says against it."""
    schema = json.loads((SCHEMAS / f"{resource['kind']}.json").read_text("utf-8"))
    checker = jsonschema.Draft202012Validator(_strict(schema))
    return [f"{error.json_path}: {error.message}" for error in checker.iter_errors(resource)]


def published(kind: str) -> dict[str, Any]:
    """The schema as its project publishes it, without prose."""
    module, path, version = SOURCES[kind]
    said = subprocess.run(
        ["go", "mod", "download", "-json", module],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    ).stdout
    definition = yaml.safe_load((Path(json.loads(said)["Dir"]) / path).read_text("utf-8"))
    (found,) = [one for one in definition["spec"]["versions"] if one["name"] == version]
    schema: dict[str, Any] = _bare(found["schema"]["openAPIV3Schema"])
    return schema


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _bare(value)
            for key, value in schema.items()
            if key != "x-kubernetes-validations"
            and not (key == "description" and isinstance(value, str))
        }
    return [_bare(one) for one in schema] if isinstance(schema, list) else schema


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _strict(value) for key, value in schema.items()}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and "type" in schema and not open_ended:
        found.setdefault("additionalProperties", False)
    return found


if __name__ == "__main__":
    for name in SOURCES:
        text = json.dumps(published(name), separators=(",", ":"), sort_keys=True)
        (SCHEMAS / f"{name}.json").write_text(text + "\n", "utf-8")
