"""A kustomization resolved: by the real program where there is one, else by what we use of it.

The second works everywhere; a test holds it against the first.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

Resource = dict[str, Any]
_KNOWN = {
    "apiVersion", "kind", "namespace", "labels", "resources", "configMapGenerator", "images",
    "replacements", "configurations", "components",
}  # fmt: skip
_CLUSTER = {"Namespace"}
_HASH = re.compile(r"-[0-9a-z]{10}$")


def program() -> list[str] | None:
    """How to build a kustomization here, if any program can."""
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    return ["kubectl", "kustomize"] if shutil.which("kubectl") else None


def built(folder: Path, command: list[str]) -> list[Resource]:
    """What the program makes of a folder, without the hashes in names of config maps."""
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
    text = done.stdout
    for resource in yaml.safe_load_all(done.stdout):
        name = resource["metadata"]["name"]
        if resource["kind"] == "ConfigMap" and _HASH.search(name):
            text = text.replace(name, _HASH.sub("", name))
    return list(yaml.safe_load_all(text))


def resolved(folder: Path) -> list[Resource]:
    """The same by the few rules that ours need."""
    spec = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    assert set(spec) <= _KNOWN, set(spec) - _KNOWN
    resources: list[Resource] = []
    for name in spec.get("resources", ()):
        path = folder / name
        resources += resolved(path) if path.is_dir() else _documents(path)
    resources += [_config_map(folder, made) for made in spec.get("configMapGenerator", ())]
    for name in spec.get("components", ()):
        resources += resolved(folder / name)
    for resource in resources:
        _complete(resource, spec)
    for replacement in spec.get("replacements", ()):
        _replace(resources, replacement)
    return resources


def _documents(path: Path) -> list[Resource]:
    # Through JSON, so that what an anchor repeats is not one object.
    return list(json.loads(json.dumps(list(yaml.safe_load_all(path.read_text("utf-8"))))))


def _config_map(folder: Path, made: dict[str, Any]) -> Resource:
    data = {Path(name).name: (folder / name).read_text("utf-8") for name in made.get("files", ())}
    data |= dict(literal.split("=", 1) for literal in made.get("literals", ()))
    metadata = {"name": made["name"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _complete(resource: Resource, spec: dict[str, Any]) -> None:
    metadata = resource["metadata"]
    if "namespace" in spec and resource["kind"] not in _CLUSTER:
        metadata["namespace"] = spec["namespace"]
        for subject in resource.get("subjects", ()):
            subject["namespace"] = spec["namespace"]
    for labels in spec.get("labels", ()):
        metadata["labels"] = metadata.get("labels", {}) | labels["pairs"]
    for image in spec.get("images", ()):
        for container in _containers(resource):
            if container["image"].split(":")[0] == image["name"]:
                container["image"] = f"{image['name']}:{image['newTag']}"


def _containers(resource: Resource) -> list[dict[str, Any]]:
    if resource["kind"] == "SparkApplication":  # as names.yaml says: its one image
        return [resource["spec"]]
    if resource["kind"] != "Deployment":
        return []
    return list(resource["spec"]["template"]["spec"]["containers"])


def _replace(resources: list[Resource], replacement: dict[str, Any]) -> None:
    """From the image of one container to one variable: all that is used of replacements."""
    (target,) = replacement["targets"]
    for resource in resources:
        named = (resource["kind"], resource["metadata"]["name"])
        if named == (target["select"]["kind"], target["select"]["name"]):
            (container,) = _containers(resource)
            (path,) = target["fieldPaths"]
            for variable in container["env"]:
                if f"env.[name={variable['name']}].value" in path:
                    variable["value"] = container["image"]
