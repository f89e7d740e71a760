"""A stand-in for a cluster: the few calls of the Kubernetes API that Spark makes.

It keeps pods in a dictionary, and what a container of an executor would run it runs as a process of
this machine, in the environment that the pod's specification gives it.
"""

import json
import os
import re
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.deploy.kustomize import Resource
from tests.support.running.processes import end_process

_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/(\w+)(?:/([^/]+))?")
ADDRESS = "127.0.0.1"


class Cluster:
    """Pods by name, and every call: (verb, resource)."""

    def __init__(self, entrypoint: Path, image: dict[str, str], folder: Path) -> None:
        self.calls: list[tuple[str, str]] = []
        self.asked: list[Resource] = []
        self.pods: dict[str, Resource] = {}
        self.logs: list[Path] = []
        self._entrypoint = entrypoint
        self._image = image
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def add(self, pod: Resource) -> Resource:
        """Take a pod, and run it if it is an executor."""
        with self._lock:
            name = pod["metadata"]["name"]
            self.asked.append(json.loads(json.dumps(pod)))
            pod["metadata"] |= {"uid": str(uuid.uuid4()), "resourceVersion": str(len(self.asked))}
            pod["status"] = {"phase": "Running", "podIP": ADDRESS, "containerStatuses": []}
            self.pods[name] = pod
            if pod["metadata"].get("labels", {}).get("spark-role") == "executor":
                self._processes[name] = self._run(pod)
        return pod

    def _run(self, pod: Resource) -> "subprocess.Popen[bytes]":
        (container,) = pod["spec"]["containers"]
        log = self._folder / f"{pod['metadata']['name']}.log"
        self.logs.append(log)
        with log.open("wb") as out:
            return subprocess.Popen(
                [self._entrypoint, *container["args"]],
                env={**self._image, **_environment(pod, container)},
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def remove(self, names: list[str]) -> None:
        """End pods."""
        with self._lock:
            for name in names:
                self.pods.pop(name, None)
                process = self._processes.pop(name, None)
                if process is not None:
                    end_process(process, 20)

    def chosen(self, query: dict[str, list[str]]) -> list[Resource]:
        """The pods that a label selector means."""
        wanted = [
            part.partition("=")[::2] for part in query.get("labelSelector", [""])[0].split(",")
        ]
        return [
            pod
            for pod in list(self.pods.values())
            if all(pod["metadata"].get("labels", {}).get(key) == to for key, to in wanted if to)
        ]


def _environment(pod: Resource, container: dict[str, Any]) -> dict[str, str]:
    fields = {
        "status.podIP": ADDRESS,
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
    }
    return {
        variable["name"]: variable.get("value") or fields.get(_field(variable), "")
        for variable in container.get("env", ())
    }


def _field(variable: dict[str, Any]) -> str:
    return str(variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath"))


@contextmanager
def serving(cluster: Cluster) -> Iterator[str]:
    """Answer for this cluster; its address. At the end nothing of it runs."""

    class Handler(_Handler):
        """Knows which cluster."""

        of = cluster

    server = ThreadingHTTPServer((ADDRESS, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{ADDRESS}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        cluster.remove(list(cluster.pods))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of: Cluster

    def do_GET(self) -> None:
        """Get, list or watch."""
        _, kind, name, query = self._where()
        if query.get("watch") == ["true"]:
            self._note("watch", kind)
            self._answer(503, {"kind": "Status", "status": "Failure", "code": 503})
        elif name:
            self._note("get", kind)
            self._answer_with(self.of.pods.get(name))
        else:
            self._note("list", kind)
            items = self.of.chosen(query) if kind == "pods" else []
            self._answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})

    def do_POST(self) -> None:
        """Create."""
        namespace, kind, _, _ = self._where()
        self._note("create", kind)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body["metadata"].setdefault("namespace", namespace)
        self._answer(201, self.of.add(body) if kind == "pods" else body)

    def do_PATCH(self) -> None:
        """Change: accepted, without effect."""
        _, kind, name, _ = self._where()
        self._note("patch", kind)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer_with(self.of.pods.get(name))

    def do_DELETE(self) -> None:
        """Delete variable, or all that are selected."""
        _, kind, name, query = self._where()
        self._note("delete" if name else "deletecollection", kind)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if kind == "pods":
            names = [name] if name else [pod["metadata"]["name"] for pod in self.of.chosen(query)]
            self.of.remove(names)
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _where(self) -> tuple[str, str, str, dict[str, list[str]]]:
        address = urlsplit(self.path)
        match = _PATH.fullmatch(unquote(address.path))
        if match is None:
            return "", address.path, "", {}
        return match[1], match[2], match[3] or "", parse_qs(address.query)

    def _note(self, verb: str, kind: str) -> None:
        self.of.calls.append((verb, kind))

    def _answer_with(self, resource: Resource | None) -> None:
        missing = {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}
        self._answer(404 if resource is None else 200, resource or missing)

    def _answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        """Do not log requests."""


def image_environment(spark_home: Path, java_home: Path, folder: Path) -> dict[str, str]:
    """What the image would set, with this machine's own paths."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SPARK_HOME": str(spark_home),
        "JAVA_HOME": str(java_home),
    }
