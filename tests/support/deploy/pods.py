"""What the manifests promise of their pods, as checks over plain data."""

import re
from collections.abc import Iterator
from typing import Any

import kubernetes_validate

KUBERNETES = ("1.29", "1.37")
"""The oldest and the newest release whose schemas are checked."""

Pod = dict[str, Any]
_VOLUMES = {"name", "configMap", "secret", "emptyDir", "persistentVolumeClaim", "projected"}


def schema_problems(resource: dict[str, Any]) -> list[str]:
    """What the strict schemas of Kubernetes say against a resource of its own kinds."""
    problems = []
    for version in KUBERNETES:
        try:
            kubernetes_validate.validate(resource, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            problems.append(f"{version}: {'.'.join(map(str, error.path))}: {error.message}")
    return problems


def as_pod(template: Pod) -> Pod:
    """A pod template as the pod that would be made of it."""
    metadata = {"name": "made", **template.get("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def unsafe(spec: dict[str, Any]) -> list[str]:
    """What keeps a pod from the standard `restricted`, and from our own: a read-only root."""
    problems = [f"pod: {what}" for what in ("hostNetwork", "hostPID", "hostIPC") if spec.get(what)]
    problems += [
        f"volume {volume['name']}: of a kind that is not allowed"
        for volume in spec.get("volumes", ())
        if not set(volume) <= _VOLUMES
    ]
    pod = spec.get("securityContext", {})
    if not pod.get("runAsNonRoot") or not pod.get("runAsUser"):
        problems.append("pod: may run as root")
    if pod.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        problems.append("pod: no seccomp profile")
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        problems += [f"{container['name']}: {what}" for what in _unsafe(container)]
    return problems


def _unsafe(container: dict[str, Any]) -> Iterator[str]:
    context = container.get("securityContext", {})
    if context.get("allowPrivilegeEscalation") is not False:
        yield "may gain privileges"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "may write its image"
    if context.get("capabilities", {}).get("drop") != ["ALL"] or "add" in context["capabilities"]:
        yield "has capabilities"
    if context.get("privileged") or context.get("runAsUser") == 0:
        yield "is privileged"


def dangling(spec: dict[str, Any], resources: list[dict[str, Any]]) -> list[str]:
    """What a pod mounts or reads that nobody makes; Secrets are made by hand."""
    names = {(each["kind"], each["metadata"]["name"]) for each in resources}
    volumes = {volume["name"] for volume in spec.get("volumes", ())}
    wanted: list[tuple[str, str]] = []
    for volume in spec.get("volumes", ()):
        if "configMap" in volume:
            wanted.append(("ConfigMap", volume["configMap"]["name"]))
        if "persistentVolumeClaim" in volume:
            wanted.append(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    problems = []
    for container in spec["containers"]:
        wanted += [
            ("ConfigMap", source["configMapRef"]["name"]) for source in container.get("envFrom", ())
        ]
        mounts = [mount["name"] for mount in container.get("volumeMounts", ())]
        problems += [f"no volume {name}" for name in mounts if name not in volumes]
        problems += [f"volume {name} is not mounted" for name in volumes if name not in mounts]
    return problems + [f"no {kind} {name}" for kind, name in wanted if (kind, name) not in names]


def variables(spec: dict[str, Any], resources: list[dict[str, Any]]) -> set[str]:
    """The environment variables that a pod's containers get from the manifests."""
    maps = {
        each["metadata"]["name"]: each["data"] for each in resources if each["kind"] == "ConfigMap"
    }
    names: set[str] = set()
    for container in spec["containers"]:
        names |= {variable["name"] for variable in container.get("env", ())}
        for source in container.get("envFrom", ()):
            names |= set(maps[source["configMapRef"]["name"]])
    return names


def referenced(text: str) -> set[str]:
    """The environment variables that a file needs, those with a default left out."""
    return set(re.findall(r"\$\{env:([A-Z_]+)\}", text))
