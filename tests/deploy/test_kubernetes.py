"""The manifests: strict schemas, promises kept, nothing points nowhere; and the checks bite."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubeflow_spark_api.models import SparkV1beta2SparkApplication

from tests.support.deploy.kustomize import Resource, built, program, resolved
from tests.support.deploy.pods import (
    as_pod,
    dangling,
    referenced,
    schema_problems,
    unsafe,
    variables,
)
from tests.support.deploy.spark_settings import known, settings_of
from unskew.config.lint import lint

OPERATORS = {"SparkApplication"}
# Put together at run time, so in no class as a whole: the test with Spark itself sees its effect.
COMPOSED = {"spark.kubernetes.authenticate.executor.serviceAccountName"}
PORTS = {"spark": 7078, "blocks": 7079, "metrics": 9095}
Change = Callable[[Resource], None]


def resource_of(resources: list[Resource], kind: str, name: str = "") -> Resource:
    (matching,) = [
        resource
        for resource in resources
        if resource["kind"] == kind and resource["metadata"]["name"].startswith(name)
    ]
    return matching


def job_text(resources: list[Resource]) -> str:
    return str(resource_of(resources, "ConfigMap", "word-count-job")["data"]["word_count.yaml"])


def templates(resources: list[Resource]) -> dict[str, Resource]:
    """The pods of driver and executors, however they are described."""
    if any(resource["kind"] == "Deployment" for resource in resources):
        spark = resource_of(resources, "ConfigMap", "word-count-spark")["data"]
        driver = resource_of(resources, "Deployment")["spec"]["template"]
        return {"driver": driver, "executor": yaml.safe_load(spark["executor.yaml"])}
    spec = resource_of(resources, "SparkApplication")["spec"]
    return {role: spec[role]["template"] for role in ("driver", "executor")}


def test_kustomize_makes_of_them_what_the_tests_read(kubernetes: Path) -> None:
    command = program()
    if command is None:
        pytest.skip("neither kustomize nor kubectl is installed")
    for way in ("deployment", "spark-operator"):
        assert _sorted(built(kubernetes / way, command)) == _sorted(resolved(kubernetes / way))


def _sorted(resources: list[Resource]) -> list[Resource]:
    return sorted(resources, key=lambda resource: (resource["kind"], resource["metadata"]["name"]))


def test_every_resource_is_of_the_schema_of_its_kind(resources: list[Resource]) -> None:
    kinds = {resource["kind"] for resource in resources}
    assert len(resources) >= 15
    assert kinds >= {"Role", "NetworkPolicy", "PodDisruptionBudget", "PersistentVolumeClaim"}
    for resource in resources:
        if resource["kind"] not in OPERATORS:
            assert schema_problems(resource) == [], resource["metadata"]["name"]


def test_pods_of_driver_and_executors_are_of_the_schema(resources: list[Resource]) -> None:
    for template in templates(resources).values():
        assert schema_problems(as_pod(template)) == []


def test_every_kind_with_a_field_too_much_is_rejected(deployment: list[Resource]) -> None:
    for kind in sorted({resource["kind"] for resource in deployment}):
        broken = copy.deepcopy(next(each for each in deployment if each["kind"] == kind))
        broken.setdefault("spec" if "spec" in broken else "metadata", {})["nonesuch"] = 1
        assert schema_problems(broken), kind


def _probe(resource: Resource) -> None:
    container = resource["spec"]["template"]["spec"]["containers"][0]
    container["livenessProbe"]["httpget"] = container["livenessProbe"].pop("httpGet")


def _ports(resource: Resource) -> None:
    resource["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] = "7078"


def _strategy(resource: Resource) -> None:
    resource["spec"]["stratgy"] = resource["spec"].pop("strategy")


@pytest.mark.parametrize("change", [_probe, _ports, _strategy])
def test_a_deployment_with_a_mistake_is_rejected(
    deployment: list[Resource], change: Change
) -> None:
    broken = copy.deepcopy(resource_of(deployment, "Deployment"))
    change(broken)
    assert schema_problems(broken)


def test_pods_are_restricted_and_their_root_is_read_only(resources: list[Resource]) -> None:
    space = resource_of(resources, "Namespace")["metadata"]["labels"]
    assert space["pod-security.kubernetes.io/enforce"] == "restricted"
    for template in templates(resources).values():
        assert unsafe(template["spec"]) == []
        assert "emptyDir" in str(template["spec"]["volumes"])


_OWN = "containers.0.securityContext"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("securityContext.runAsNonRoot", False, "pod: may run as root"),
        ("securityContext.seccompProfile.type", "Unconfined", "pod: no seccomp profile"),
        ("hostNetwork", True, "pod: hostNetwork"),
        (f"{_OWN}.allowPrivilegeEscalation", True, "driver: may gain privileges"),
        (f"{_OWN}.readOnlyRootFilesystem", False, "driver: may write its image"),
        (f"{_OWN}.capabilities.drop", [], "driver: has capabilities"),
        ("volumes.0.hostPath", {"path": "/"}, "volume job: of a kind that is not allowed"),
    ],
)
def test_an_unsafe_pod_is_rejected(
    deployment: list[Resource], path: str, value: object, says: str
) -> None:
    spec = copy.deepcopy(resource_of(deployment, "Deployment")["spec"]["template"]["spec"])
    *way, last = path.split(".")
    section: Any = spec
    for step in way:
        section = section[int(step)] if step.isdecimal() else section[step]
    section[last] = value
    assert unsafe(spec) == [says]


def test_pods_mount_only_what_is_made(resources: list[Resource]) -> None:
    for template in templates(resources).values():
        assert dangling(template["spec"], resources) == []


def test_a_mount_or_a_config_map_that_is_missing_is_rejected(deployment: list[Resource]) -> None:
    spec = copy.deepcopy(resource_of(deployment, "Deployment")["spec"]["template"]["spec"])
    spec["volumes"][0]["configMap"]["name"] = "word-count-jobs"
    spec["containers"][0]["volumeMounts"].pop()
    assert dangling(spec, deployment) == [
        "volume tmp is not mounted",
        "no ConfigMap word-count-jobs",
    ]


def test_driver_and_executors_see_the_same_files(resources: list[Resource]) -> None:
    mounts = {
        role: {
            mount["mountPath"]: mount["name"]
            for mount in template["spec"]["containers"][0]["volumeMounts"]
        }
        for role, template in templates(resources).items()
    }
    shared = {"/run/secrets/kafka": "kafka", "/var/lib/unskew": "checkpoint", "/tmp": "tmp"}  # noqa: S108
    assert mounts["executor"] == shared
    assert mounts["driver"].items() >= shared.items()
    claim = resource_of(resources, "PersistentVolumeClaim")["spec"]
    assert claim["accessModes"] == ["ReadWriteMany"]


def test_the_job_is_clean_and_reads_only_what_its_driver_has(
    root: Path, resources: list[Resource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = job_text(resources)
    driver = templates(resources)["driver"]["spec"]
    image = dict(
        re.findall(r"^\s+(?:ENV )?([A-Z_]+)=(\S+?)(?: \\)?$", _dockerfile(root), re.MULTILINE)
    )
    assert referenced(text) - variables(driver, resources) - set(image) == set()
    known = image | resource_of(resources, "ConfigMap", "word-count-environment")["data"]
    for name in referenced(text):
        monkeypatch.setenv(name, known.get(name, "value"))
    (tmp_path / "word_count.yaml").write_text(text)
    assert lint([str(tmp_path / "word_count.yaml")]) == []
    mount = driver["containers"][0]["volumeMounts"][0]["mountPath"]
    assert mount == "/etc/unskew"
    assert str(yaml.safe_load(text)["metrics"]["port"]) == str(PORTS["metrics"])


def _dockerfile(root: Path) -> str:
    return (root / "deploy" / "Dockerfile").read_text()


def test_the_job_is_the_shipped_one_but_for_its_surroundings(
    root: Path, deployment: list[Resource]
) -> None:
    shipped = yaml.safe_load((root / "config" / "jobs" / "word_count.yaml").read_text())
    here = yaml.safe_load(job_text(deployment))
    del here["source"]["options"]
    for job in (here, shipped):
        for surrounding in ("metrics", "checkpoint", "spark"):
            del job[surrounding]
        del job["source"]["bootstrap_servers"]
    assert here == shipped


def test_settings_of_spark_are_real(deployment: list[Resource], operator: list[Resource]) -> None:
    text = resource_of(deployment, "ConfigMap", "word-count-spark")["data"]["spark-defaults.conf"]
    settings = settings_of(text)
    assert set(settings) - known() == COMPOSED
    application = resource_of(operator, "SparkApplication")["spec"]["sparkConf"]
    assert set(application) - known() == COMPOSED
    assert "spark.executor.instance" not in known()
    for port in ("driver.port", "driver.blockManager.port", "blockManager.port"):
        number = PORTS["spark" if port == "driver.port" else "blocks"]
        assert settings[f"spark.{port}"] == application[f"spark.{port}"] == str(number)
    driver = variables(templates(deployment)["driver"]["spec"], deployment)
    assert referenced(text) <= driver


def test_a_driver_is_alone_and_reached_by_its_name(resources: list[Resource]) -> None:
    service = resource_of(resources, "Service")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == PORTS
    driver = templates(resources)["driver"]
    assert service["spec"]["selector"].items() <= driver["metadata"]["labels"].items()
    (container,) = driver["spec"]["containers"]
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == PORTS
    assert container["args" if "args" in container else "name"] in (
        ["run", "/etc/unskew/word_count.yaml", "--log", "json"],
        "spark-kubernetes-driver",
    )
    paths = {
        probe: container[f"{probe}Probe"]["httpGet"]["path"]
        for probe in ("startup", "liveness", "readiness")
    }
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}


def test_a_failed_query_stays_long_enough_to_be_seen(
    resources: list[Resource], kubernetes: Path
) -> None:
    hold_seconds = int(
        yaml.safe_load(job_text(resources))["metrics"]["hold_after_failure"].removesuffix(" s")
    )
    probe = templates(resources)["driver"]["spec"]["containers"][0]["livenessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > hold_seconds
    monitor = resource_of(resolved(kubernetes / "monitoring"), "ServiceMonitor")
    assert 3 * int(monitor["spec"]["endpoints"][0]["interval"].removesuffix("s")) <= hold_seconds


def test_the_deployment_never_runs_two_drivers(deployment: list[Resource]) -> None:
    spec = resource_of(deployment, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    pod = spec["template"]["spec"]
    assert (
        pod["serviceAccountName"] == resource_of(deployment, "RoleBinding")["subjects"][0]["name"]
    )
    environment = {item["name"]: item.get("value") for item in pod["containers"][0]["env"]}
    assert environment["DRIVER_HOST"].startswith(
        resource_of(deployment, "Service")["metadata"]["name"]
    )
    assert environment["UNSKEW_IMAGE"] == pod["containers"][0]["image"] == "unskew:0.1.0"


def test_both_ways_make_the_same_executors(
    deployment: list[Resource], operator: list[Resource]
) -> None:
    spark = resource_of(deployment, "ConfigMap", "word-count-spark")["data"]
    conf = settings_of(spark["spark-defaults.conf"])
    spec = resource_of(operator, "SparkApplication")["spec"]
    executor = spec["executor"]
    assert executor["instances"] == int(conf["spark.executor.instances"])
    assert executor["cores"] == int(conf["spark.executor.cores"])
    assert executor["memory"] == conf["spark.executor.memory"]
    assert executor["memoryOverhead"] == conf["spark.executor.memoryOverhead"]
    cores = executor["instances"] * executor["cores"]
    assert cores == yaml.safe_load(job_text(deployment))["partitions"]
    budget = resource_of(operator, "PodDisruptionBudget", "word-count-executor")["spec"][
        "minAvailable"
    ]
    assert budget == executor["instances"] - 1
    ours, theirs = templates(deployment)["executor"], templates(operator)["executor"]
    assert (ours["metadata"], ours["spec"]) == (theirs["metadata"], theirs["spec"])


def test_traffic_is_denied_but_for_what_a_job_needs(resources: list[Resource]) -> None:
    policies = {
        each["metadata"]["name"]: each["spec"]
        for each in resources
        if each["kind"] == "NetworkPolicy"
    }
    everyone = policies["word-count"]
    assert everyone["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everyone
    assert _ports_of(everyone["egress"]) == {53, 7078, 7079, 9093}
    assert _ports_of(policies["word-count-driver"]["ingress"]) == set(PORTS.values())
    assert _ports_of(policies["word-count-driver"]["egress"]) == {443, 6443}
    assert _ports_of(policies["word-count-executor"]["ingress"]) == {7079}
    for template in templates(resources).values():
        chosen = everyone["podSelector"]["matchLabels"]
        assert chosen.items() <= template["metadata"]["labels"].items()
    (brokers,) = resource_of(resources, "ConfigMap", "word-count-environment")["data"].values()
    assert int(brokers.rpartition(":")[2]) in _ports_of(everyone["egress"])


def _ports_of(rules: list[dict[str, Any]]) -> set[int]:
    assert all(rule.get("to") or rule.get("from") for rule in rules)
    return {port["port"] for rule in rules for port in rule["ports"]}


def test_no_secret_is_in_a_manifest(resources: list[Resource]) -> None:
    assert not [each for each in resources if each["kind"] == "Secret"]
    assert "password" in yaml.safe_dump(templates(resources)["driver"])


def test_the_model_of_the_spark_operator_knows_every_field(operator: list[Resource]) -> None:
    assert _modelled(resource_of(operator, "SparkApplication")) is True


@pytest.mark.parametrize("field", ["restartPolcy", "driver.coers", "executor.instance"])
def test_a_field_that_the_spark_operator_would_drop_is_rejected(
    operator: list[Resource], field: str
) -> None:
    broken = copy.deepcopy(resource_of(operator, "SparkApplication"))
    *way, last = field.split(".")
    section = broken["spec"]
    for step in way:
        section = section[step]
    section[last] = 1
    assert _modelled(broken) is False


def _modelled(resource: Resource) -> bool:
    """Does the model give back all that it got? It drops what it does not know.

    Templates are left out: the model takes no quantity as Kubernetes writes it. They are pods, and
    checked as such.
    """
    bare = copy.deepcopy(resource)
    for role in ("driver", "executor"):
        del bare["spec"][role]["template"]
    model = SparkV1beta2SparkApplication.model_validate(bare)
    return bool(model.model_dump(by_alias=True, exclude_none=True) == bare)
