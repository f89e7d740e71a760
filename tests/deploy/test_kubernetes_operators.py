"""Resources of the Spark and the Prometheus operator: their own schemas, read strictly."""

import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.deploy.crds import SOURCES, problems
from tests.support.deploy.kustomize import Resource, built, program, resolved
from tests.support.deploy.promtool import promtool, rules_of


@pytest.fixture
def monitoring(kubernetes: Path) -> dict[str, Resource]:
    return {each["kind"]: each for each in resolved(kubernetes / "monitoring")}


@pytest.fixture
def application(operator: list[Resource]) -> Resource:
    (application,) = [each for each in operator if each["kind"] == "SparkApplication"]
    return copy.deepcopy(application)


@pytest.mark.slow
@pytest.mark.xdist_group("crds")
def test_they_are_of_the_schemas_of_their_operators(
    monitoring: dict[str, Resource], application: Resource
) -> None:
    assert {"SparkApplication", *monitoring} == set(SOURCES)
    for resource in (application, *monitoring.values()):
        assert problems(resource) == []


@pytest.mark.slow
@pytest.mark.xdist_group("crds")
@pytest.mark.parametrize(
    ("kind", "path", "value", "says"),
    [
        ("SparkApplication", "spec.restartPolcy", {}, "'restartPolcy' was unexpected"),
        ("SparkApplication", "spec.mode", "clustr", "'clustr' is not one of"),
        ("SparkApplication", "spec.driver.cores", "1", "'1' is not of type 'integer'"),
        ("SparkApplication", "spec.executor.instance", 4, "'instance' was unexpected"),
        ("ServiceMonitor", "spec.endpoints.0.interval", "20", "does not match"),
        ("ServiceMonitor", "spec.endpoints.0.prot", "metrics", "'prot' was unexpected"),
        ("ServiceMonitor", "spec.selector", None, "None is not of type 'object'"),
        ("PrometheusRule", "spec.groups.0.rules.0.sumary", "x", "'sumary' was unexpected"),
        ("PrometheusRule", "spec.groups.0.rules.0.for", "ten", "does not match"),
    ],
)
def test_a_resource_with_a_mistake_is_rejected(
    monitoring: dict[str, Resource],
    application: Resource,
    kind: str,
    path: str,
    value: object,
    says: str,
) -> None:
    broken = application if kind == "SparkApplication" else monitoring[kind]
    *way, last = path.split(".")
    section = broken
    for step in way:
        section = section[int(step)] if step.isdecimal() else section[step]  # type: ignore[index]
    section[last] = value
    (problem,) = problems(broken)
    assert says in problem


def test_the_monitor_finds_the_metrics_of_the_driver(
    deployment: list[Resource], monitoring: dict[str, Resource]
) -> None:
    (service,) = [each for each in deployment if each["kind"] == "Service"]
    spec = monitoring["ServiceMonitor"]["spec"]
    labels = service["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert spec["jobLabel"] in labels
    assert [each["port"] for each in spec["endpoints"]] == ["metrics"]
    assert "metrics" in {port["name"] for port in service["spec"]["ports"]}


def test_the_rule_resource_holds_the_rules_that_prometheus_reads(
    root: Path, monitoring: dict[str, Resource], tmp_path: Path
) -> None:
    maker = [sys.executable, str(root / "deploy" / "prometheus_rule.py"), "--check"]
    done = subprocess.run(maker, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    groups = tmp_path / "rules.yml"
    groups.write_text(yaml.safe_dump(monitoring["PrometheusRule"]["spec"]))
    files = sorted((root / "deploy" / "prometheus" / "rules").glob("*.yml"))
    assert rules_of(groups) == rules_of(*files)
    code, output = promtool("check", "rules", "rules.yml", folder=tmp_path)
    assert code == 0, output


def overlaid(kubernetes: Path, folder: Path, kustomization: str) -> list[Resource]:
    """What the real program makes of a user's kustomization, beside ours."""
    command = program()
    if command is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    copied = folder / "kubernetes"
    shutil.copytree(kubernetes, copied)
    own = copied / "own"
    own.mkdir()
    (own / "kustomization.yaml").write_text(kustomization)
    return built(own, command)


def test_the_component_adds_its_resources_in_the_namespace(
    kubernetes: Path, tmp_path: Path
) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (kubernetes / "README.md").read_text(), re.DOTALL)
    resources = overlaid(kubernetes, tmp_path, example)
    added = [each for each in resources if each["apiVersion"].startswith("monitoring")]
    assert {(each["kind"], each["metadata"]["namespace"]) for each in added} == {
        ("ServiceMonitor", "unskew"),
        ("PrometheusRule", "unskew"),
    }
    (driver,) = [each for each in resources if each["kind"] == "Deployment"]
    (container,) = driver["spec"]["template"]["spec"]["containers"]
    image = {each["name"]: each.get("value") for each in container["env"]}["UNSKEW_IMAGE"]
    assert container["image"] == image == "registry.example/unskew:0.1.0"


def test_the_application_too_takes_its_image_from_another_registry(
    kubernetes: Path, tmp_path: Path
) -> None:
    resources = overlaid(
        kubernetes,
        tmp_path,
        "resources: [../spark-operator]\n"
        "images: [{name: unskew, newName: registry.example/unskew, newTag: 0.2.0}]\n",
    )
    (application,) = [each for each in resources if each["kind"] == "SparkApplication"]
    assert application["spec"]["image"] == "registry.example/unskew:0.2.0"
