"""docker-compose.yml as Compose reads it, and its addresses and paths on this machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from unskew.config.errors import ExternalError
from unskew.jobs.local.child_processes import find_free_ports

ROOT = Path(__file__).resolve().parents[2]
OURS, KAFKA = "unskew", "apache/kafka"

# As Compose writes durations: Go's own.
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

Service = dict[str, Any]


def resolved(file: Path, profile: str) -> dict[str, Service]:
    """The services of a profile, as Compose reads the file."""
    compose = str(Path(sys.executable).with_name("docker-compose"))
    options = ["-f", str(file), "--project-directory", str(ROOT), "--env-file", ".env.example"]
    done = subprocess.run(
        [compose, *options, "--profile", profile, "config", "--format", "json"],
        cwd=ROOT,
        env={"GRAFANA_ADMIN_PASSWORD": "dry", **os.environ, "COMPOSE_PROFILES": profile},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ExternalError(f"{file.name}: {done.stderr.strip()}")
    services: dict[str, Service] = json.loads(done.stdout)["services"]
    return services


def in_order(services: dict[str, Service], wanted: list[str]) -> list[str]:
    """`wanted` and all they depend on, each after what it depends on."""
    order: list[str] = []

    def add(name: str) -> None:
        if name not in services:
            raise ExternalError(f"{name}: no such service; there are {', '.join(services)}")
        for dependency in services[name].get("depends_on") or {}:
            add(dependency)
        if name not in order:
            order.append(name)

    for name in wanted or services:
        add(name)
    return order


def repository(service: Service) -> str:
    """The image without its version."""
    return str(service["image"]).rpartition(":")[0]


def ends_by_itself(service: Service) -> bool:
    """Whether it ends by itself and is not started again."""
    return service.get("restart") == "no"


def dockerfile_health_check() -> list[str]:
    """The image's own health check, as the words of its command."""
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    (words,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", text, re.MULTILINE)
    command: list[str] = json.loads(words)
    return command


def seconds(duration: str) -> float:
    """A duration as Compose writes it, such as 1m30s."""
    parts = re.findall(r"([\d.]+)([a-zµ]+)", duration)
    if "".join(map("".join, parts)) != duration or any(unit not in _UNITS for _, unit in parts):
        raise ExternalError(f"{duration}: not a duration such as 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def job_services(services: dict[str, Service]) -> dict[str, str]:
    """Services that run a job, with the job's name."""
    jobs = {}
    for name, service in services.items():
        words = service.get("command") or []
        if repository(service) == OURS and words[:1] == ["run"]:
            jobs[name] = words[1]
    return jobs


class Native:
    """Where containers' addresses, ports and paths are on this machine."""

    def __init__(self, services: dict[str, Service], folder: Path) -> None:
        self._services = services
        self._folder = folder
        self._ports: dict[tuple[str, int], int] = {}
        names = "|".join(sorted(map(re.escape, services), key=len, reverse=True))
        self._address = re.compile(
            rf"(?<![\w.-])({names}|127\.0\.0\.1|0\.0\.0\.0|):(\d{{4,5}})(?!\d)"
        )

    def port(self, service: str, port: int) -> int:
        """The free port that stands for a container's."""
        if (service, port) not in self._ports:
            taken = set(self._ports.values())
            self._ports[service, port] = next(p for p in find_free_ports(50) if p not in taken)
        return self._ports[service, port]

    def text(self, service: str, text: str) -> str:
        """A text of a service's settings or command, with its addresses and paths replaced."""

        def native_address(match: re.Match[str]) -> str:
            name = match[1] if match[1] in self._services else service
            return f"127.0.0.1:{self.port(name, int(match[2]))}"

        text = self._address.sub(native_address, text)
        paths = {
            mount["target"]: str(self._target(service, mount))
            for mount in self._services[service].get("volumes") or []
        }
        if not paths:
            return text
        longest_first = "|".join(sorted(map(re.escape, paths), key=len, reverse=True))
        path = re.compile(rf"(?<![\w.-])({longest_first})(?![\w.-])")
        return path.sub(lambda match: paths[match[1]], text)

    def environment(self, service: str) -> dict[str, str]:
        """The variables of a service."""
        given = self._services[service].get("environment") or {}
        variables = {name: self.text(service, str(value)) for name, value in given.items()}
        if "METRICS_PORT" in variables:
            variables["METRICS_HOST"] = "127.0.0.1"
            variables["METRICS_PORT"] = str(self.port(service, int(variables["METRICS_PORT"])))
        return variables

    def mount(self, service: str) -> None:
        """Make what is mounted: folders for volumes, copies with replaced addresses for files."""
        for mount in self._services[service].get("volumes") or []:
            target = self._target(service, mount)
            if mount["type"] == "volume":
                target.mkdir(parents=True)
                continue
            source = Path(mount["source"])
            files = [source] if source.is_file() else sorted(source.glob("*.*"))
            for file in files:
                copy = target if source.is_file() else target / file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(self.text(service, file.read_text()))

    def _target(self, service: str, mount: dict[str, Any]) -> Path:
        return self.path_of(service, str(mount["target"]))

    def path_of(self, service: str, path: str) -> Path:
        """Where a path of a container is on this machine."""
        return self._folder / service / path.strip("/")
