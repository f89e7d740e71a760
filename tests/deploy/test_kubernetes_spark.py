"""Spark with the manifests' own settings, against a stand-in for the API server."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.support.deploy.api_server import Cluster, image_environment, serving
from tests.support.deploy.kustomize import Resource
from tests.support.deploy.pods import schema_problems, unsafe
from unskew.grouping.registry import GROUPINGS
from unskew.jobs.local.java import find_java_home

POD, NAMESPACE, IMAGE = "word-count-driver-0", "unskew", "unskew:0.1.0"


def data(resources: list[Resource], name: str) -> dict[str, str]:
    (data,) = [
        each["data"]
        for each in resources
        if (each["kind"], each["metadata"]["name"]) == ("ConfigMap", name)
    ]
    return dict(data)


def configured(resources: list[Resource], folder: Path) -> Path:
    """The driver's mounts, with executors that fit this machine; where the job is."""
    spark = data(resources, "word-count-spark")
    conf = spark["spark-defaults.conf"].replace("/etc/spark", str(folder))
    for name, value in {"spark.executor.instances": 1, "spark.executor.memory": "512m"}.items():
        conf = "".join(
            f"{name} {value}\n" if line.startswith(f"{name} ") else line
            for line in conf.splitlines(keepends=True)
        )
    (folder / "spark-defaults.conf").write_text(conf)
    (folder / "executor.yaml").write_text(spark["executor.yaml"])
    job = folder / "word_count.yaml"
    job.write_text(data(resources, "word-count-job")["word_count.yaml"])
    return job


def drive(resources: list[Resource], root: Path, folder: Path, url: str) -> dict[str, Any]:
    """Run the driver to its end; what it printed."""
    environment = {
        **os.environ,
        "KAFKA_BOOTSTRAP_SERVERS": "kafka:9093",
        "KAFKA_PASSWORD": "secret-word",
        "UNSKEW_CHECKPOINTS": str(folder),
        "DRIVER_HOST": "127.0.0.1",
        "POD_NAME": POD,
        "POD_NAMESPACE": NAMESPACE,
        "UNSKEW_IMAGE": IMAGE,
        "SPARK_CONF_DIR": str(folder),
        "KUBECONFIG": str(folder / "none"),
    }
    job = configured(resources, folder)
    changes = json.dumps({"spark.spark.master": f"k8s://{url}"})
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.deploy.driver_in_a_pod", job, changes],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.e2e
def test_spark_makes_the_executors_that_the_manifests_describe(
    deployment: list[Resource], root: Path, tmp_path: Path
) -> None:
    home = Path(pyspark.__file__).parent
    environment = image_environment(home, find_java_home(), tmp_path)
    environment["PYSPARK_PYTHON"] = sys.executable
    cluster = Cluster(root / "deploy" / "entrypoint.sh", environment, tmp_path)
    driver = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "driver"}]},
    }
    cluster.add(driver)
    with serving(cluster) as url:
        printed = drive(deployment, root, tmp_path, url)

    ((executor, count),) = printed["at"].items()
    # A name of its own at every start: what an earlier driver left may not be in the way.
    assert re.fullmatch(rf"word-count-[0-9a-f]+-exec-1 {len(GROUPINGS)}", executor), executor
    assert count == 1000
    assert printed["spark.driver.bindAddress"] == "0.0.0.0"  # noqa: S104 - in a pod
    # What counted above was an executor's process, so both ends knew the secret of this start.
    secured = ("spark.authenticate", "spark.network.crypto.enabled")
    assert [printed[name] for name in secured] == ["true", "true"]
    executor = cluster.asked[1]
    assert schema_problems(executor) == []
    assert unsafe(executor["spec"]) == []
    assert executor["spec"]["serviceAccountName"] == "word-count-executor"
    (container,) = executor["spec"]["containers"]
    assert (container["image"], container["args"]) == (IMAGE, ["executor"])
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "4608Mi"}
    (secret,) = [each["value"] for each in container["env"] if each["name"] == "_SPARK_AUTH_SECRET"]
    assert re.fullmatch("[0-9a-f]{64}", secret)
    (owner,) = executor["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Pod", POD)
    # Of both policies that are meant for it, and of its budget.
    assert selected(executor, deployment) == ["word-count", *["word-count-executor"] * 2]
    assert calls_beyond_the_role(cluster, deployment) == set()
    assert "secret-word" not in json.dumps(cluster.asked)


def selected(pod: Resource, resources: list[Resource]) -> list[str]:
    """The policies and budgets whose selector means this pod."""
    names = []
    for each in resources:
        chosen = each.get("spec", {}).get("podSelector") or each.get("spec", {}).get("selector", {})
        wanted = chosen.get("matchLabels")
        if wanted and wanted.items() <= pod["metadata"]["labels"].items():
            names.append(each["metadata"]["name"])
    return sorted(names)


def calls_beyond_the_role(cluster: Cluster, resources: list[Resource]) -> set[tuple[str, str]]:
    """What Spark asked of the API server that the driver's Role does not allow."""
    (role,) = [each for each in resources if each["kind"] == "Role"]
    allowed = {
        (verb, kind)
        for rule in role["rules"]
        for kind in rule["resources"]
        for verb in rule["verbs"]
    }
    return set(cluster.calls) - allowed


def test_a_call_that_the_role_does_not_allow_is_rejected(
    deployment: list[Resource], tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, {}, tmp_path)
    cluster.calls = [("create", "pods"), ("deletecollection", "services"), ("get", "secrets")]
    beyond = {("deletecollection", "services"), ("get", "secrets")}
    assert calls_beyond_the_role(cluster, deployment) == beyond
