"""Schemas of the operators' resources, from their own projects' Go modules, read strictly.

The API server only drops fields that a schema does not know; here they are errors.
"""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

FETCH_SECONDS = 60
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
    errors = _checker(resource["kind"]).iter_errors(resource)
    return [f"{error.json_path}: {error.message}" for error in errors]


@cache
def _checker(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(_strict(published(kind)))


@cache
def published(kind: str) -> dict[str, Any]:
    """The schema as its project publishes it; a test that cannot get it is skipped."""
    module, path, version = SOURCES[kind]
    folder, trouble = _fetched(module)
    if trouble:
        pytest.skip(trouble)
    # A megabyte: libyaml reads it in a tenth of the time, where it is there.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    definition = yaml.load((folder / path).read_text("utf-8"), loader)  # noqa: S506 - a safe one
    (served,) = [each for each in definition["spec"]["versions"] if each["name"] == version]
    schema: dict[str, Any] = served["schema"]["openAPIV3Schema"]
    return schema


@cache
def _fetched(module: str) -> tuple[Path, str]:
    """A module's folder, or why it cannot be fetched; a failed fetch is not repeated."""
    if shutil.which("go") is None:
        return Path(), "go is not installed: it fetches the modules that hold the schemas"
    try:
        done = subprocess.run(
            ["go", "mod", "download", "-json", module],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Path(), f"go cannot fetch {module}: no answer for {FETCH_SECONDS} s"
    if done.returncode:
        return Path(), f"go cannot fetch {module}: {done.stdout[-200:]}"
    return Path(json.loads(done.stdout)["Dir"]), ""


def _strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in schema.items()}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and "type" in schema and not open_ended:
        strict.setdefault("additionalProperties", False)
    return strict
