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
    found = []
    for version in KUBERNETES:
        try:
            kubernetes_validate.validate(resource, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"{version}: {'.'.join(map(str, error.path))}: {error.message}")
    return found


def as_pod(template: Pod) -> Pod:
    """A pod template as the pod that would be made of it."""
    metadata = {"name": "made", **template.get("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def unsafe(spec: dict[str, Any]) -> list[str]:
    """What keeps a pod from the standard `restricted`, and from our own: a read-only root."""
    found = [f"pod: {what}" for what in ("hostNetwork", "hostPID", "hostIPC") if spec.get(what)]
    found += [
        f"volume {volume['name']}: of a kind that is not allowed"
        for volume in spec.get("volumes", ())
        if not set(volume) <= _VOLUMES
    ]
    pod = spec.get("securityContext", {})
    if not pod.get("runAsNonRoot") or not pod.get("runAsUser"):
        found.append("pod: may run as root")
    if pod.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        found.append("pod: no seccomp profile")
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        found += [f"{container['name']}: {what}" for what in _unsafe(container)]
    return found


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
    names = {(one["kind"], one["metadata"]["name"]) for one in resources}
    volumes = {volume["name"] for volume in spec.get("volumes", ())}
    wanted: list[tuple[str, str]] = []
    for volume in spec.get("volumes", ()):
        if "configMap" in volume:
            wanted.append(("ConfigMap", volume["configMap"]["name"]))
        if "persistentVolumeClaim" in volume:
            wanted.append(("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]))
    found = []
    for container in spec["containers"]:
        wanted += [
            ("ConfigMap", one["configMapRef"]["name"]) for one in container.get("envFrom", ())
        ]
        mounts = [mount["name"] for mount in container.get("volumeMounts", ())]
        found += [f"no volume {name}" for name in mounts if name not in volumes]
        found += [f"volume {name} is not mounted" for name in volumes if name not in mounts]
    return found + [f"no {kind} {name}" for kind, name in wanted if (kind, name) not in names]


def variables(spec: dict[str, Any], resources: list[dict[str, Any]]) -> set[str]:
    """The environment variables that a pod's containers get from the manifests."""
    maps = {one["metadata"]["name"]: one["data"] for one in resources if one["kind"] == "ConfigMap"}
    found: set[str] = set()
    for container in spec["containers"]:
        found |= {one["name"] for one in container.get("env", ())}
        for one in container.get("envFrom", ()):
            found |= set(maps[one["configMapRef"]["name"]])
    return found


def referenced(text: str) -> set[str]:
    """The environment variables that a file needs, those with a default left out."""
    return set(re.findall(r"\$\{env:([A-Z_]+)\}", text))
