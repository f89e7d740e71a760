"""docker-compose.yml as Compose reads it, and where its containers' places are on this machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from unskew.config.errors import ExternalError
from unskew.jobs.local.child_processes import free_ports

ROOT = Path(__file__).resolve().parents[2]
OURS, KAFKA = "unskew", "apache/kafka"

# As Compose writes durations: Go's own.
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

Service = dict[str, Any]


def resolved(file: Path, profile: str) -> dict[str, Service]:
    """The services of a profile, as Compose reads the file."""
    compose = str(Path(sys.executable).with_name("docker-compose"))
    places = ["-f", str(file), "--project-directory", str(ROOT), "--env-file", ".env.example"]
    done = subprocess.run(
        [compose, *places, "--profile", profile, "config", "--format", "json"],
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
    found: list[str] = []

    def add(name: str) -> None:
        if name not in services:
            raise ExternalError(f"{name}: no such service; there are {', '.join(services)}")
        for one in services[name].get("depends_on") or {}:
            add(one)
        if name not in found:
            found.append(name)

    for name in wanted or services:
        add(name)
    return found


def repository(service: Service) -> str:
    """The image without its version."""
    return str(service["image"]).rpartition(":")[0]


def ends_by_itself(service: Service) -> bool:
    """Is it done at some time, and not to be started again?"""
    return service.get("restart") == "no"


def dockerfile_health_check() -> list[str]:
    """The image's own health check, as the words of its command."""
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    (words,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", text, re.MULTILINE)
    found: list[str] = json.loads(words)
    return found


def seconds(duration: str) -> float:
    """A duration as Compose writes it, such as 1m30s."""
    parts = re.findall(r"([\d.]+)([a-zµ]+)", duration)
    if "".join(map("".join, parts)) != duration or any(unit not in _UNITS for _, unit in parts):
        raise ExternalError(f"{duration}: not a duration such as 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def job_services(services: dict[str, Service]) -> dict[str, str]:
    """Services that run a job, with the job's name."""
    found = {}
    for name, service in services.items():
        words = service.get("command") or []
        if repository(service) == OURS and words[:1] == ["run"]:
            found[name] = words[1]
    return found


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
            self._ports[service, port] = next(p for p in free_ports(50) if p not in taken)
        return self._ports[service, port]

    def text(self, service: str, text: str) -> str:
        """A text of a service's settings or command, with what it says of places replaced."""

        def here(found: re.Match[str]) -> str:
            name = found[1] if found[1] in self._services else service
            return f"127.0.0.1:{self.port(name, int(found[2]))}"

        text = self._address.sub(here, text)
        places = {
            mount["target"]: str(self._place(service, mount))
            for mount in self._services[service].get("volumes") or []
        }
        if not places:
            return text
        longest_first = "|".join(sorted(map(re.escape, places), key=len, reverse=True))
        path = re.compile(rf"(?<![\w.-])({longest_first})(?![\w.-])")
        return path.sub(lambda found: places[found[1]], text)

    def environment(self, service: str) -> dict[str, str]:
        """The variables of a service."""
        given = self._services[service].get("environment") or {}
        found = {name: self.text(service, str(value)) for name, value in given.items()}
        if "METRICS_PORT" in found:
            found["METRICS_HOST"] = "127.0.0.1"
            found["METRICS_PORT"] = str(self.port(service, int(found["METRICS_PORT"])))
        return found

    def mount(self, service: str) -> None:
        """Make what is mounted: folders for volumes, copies with replaced places for files."""
        for mount in self._services[service].get("volumes") or []:
            place = self._place(service, mount)
            if mount["type"] == "volume":
                place.mkdir(parents=True)
                continue
            source = Path(mount["source"])
            files = [source] if source.is_file() else sorted(source.glob("*.*"))
            for file in files:
                copy = place if source.is_file() else place / file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(self.text(service, file.read_text()))

    def _place(self, service: str, mount: dict[str, Any]) -> Path:
        return self.place(service, str(mount["target"]))

    def place(self, service: str, path: str) -> Path:
        """A path of a container."""
        return self._folder / service / path.strip("/")
