"""What docker-compose.yml and the files it mounts must agree on, with the code and each other.

Each check returns its problems; compose_doubles.py has edits that each check must reject.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.compose.compose_file import (
    KAFKA,
    OURS,
    ROOT,
    dockerfile_health_check,
    job_services,
    repository,
    resolved,
    seconds,
)
from unskew import __version__
from unskew.config.errors import UsageError
from unskew.config.loader import load
from unskew.jobs.__main__ import _parser
from unskew.jobs.commands.run import parse_overrides
from unskew.jobs.commands.topics import _collect_topics
from unskew.jobs.generator.options import read_plan
from unskew.jobs.generator.settings import KafkaTarget

FILES = {
    "compose": "docker-compose.yml",
    "example": ".env.example",
    "dockerfile": "deploy/Dockerfile",
    "prometheus": "deploy/compose/prometheus.yml",
    "datasource": "deploy/compose/grafana/datasources/prometheus.yml",
    "provider": "deploy/compose/grafana/dashboards/unskew.yml",
}
LOCAL = "SPARK_LOCAL_DIRS"
"""Spark's own: where it shuffles."""
KEPT = {"UNSKEW_CHECKPOINTS", "UNSKEW_RESULTS", "KAFKA_LOG_DIRS", LOCAL}
# What a service's command waits for has another name than the port that it listens on.
PORTS = {"kafka": {9092, 29092}, "alertmanager": {9093}, "prometheus": {9090}, "grafana": {3000}}


@dataclass(frozen=True)
class Compose:
    """The files as texts, and the services of the profile `demo` as Compose reads them."""

    texts: dict[str, str]
    services: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, texts: dict[str, str], folder: Path) -> "Compose":
        """Resolve the texts."""
        (folder / "docker-compose.yml").write_text(texts["compose"])
        return cls(texts, resolved(folder / "docker-compose.yml", "demo"))

    def ours(self) -> dict[str, dict[str, Any]]:
        """The services of our image."""
        return {
            name: service for name, service in self.services.items() if repository(service) == OURS
        }


def texts_of_the_checkout() -> dict[str, str]:
    """The files as they are."""
    return {name: (ROOT / path).read_text() for name, path in FILES.items()}


def parsed(words: list[str]) -> argparse.Namespace | str:
    """Parse a command line as `unskew` does; the error message if it is wrong."""
    try:
        return _parser(words).parse_args(words)
    except UsageError as error:
        return str(error)


def loaded_jobs(compose: Compose) -> dict[str, Any]:
    """Load each service's job, as its command and its environment alone make it."""
    jobs = {}
    for service, job in job_services(compose.services).items():
        with pytest.MonkeyPatch.context() as patch:
            for name in ("KAFKA_BOOTSTRAP_SERVERS", "METRICS_HOST", "METRICS_PORT", "SPARK_MASTER"):
                patch.delenv(name, raising=False)
            for name, value in compose.services[service]["environment"].items():
                patch.setenv(name, value)
            arguments = parsed(compose.services[service]["command"])
            assert not isinstance(arguments, str), arguments
            jobs[service] = load(job, parse_overrides(arguments.set))
    return jobs


def commands_are_understood(compose: Compose) -> list[str]:
    """Check that the command line's own parser accepts every command, and a generator's values."""
    problems = []
    for name, service in compose.ours().items():
        arguments = parsed(service["command"])
        if isinstance(arguments, str):
            problems.append(f"{name}: {arguments}")
        elif arguments.command == "generate":
            read_plan(arguments)
    return problems


def jobs_lint_in_their_environment(compose: Compose) -> list[str]:
    """Check that each job lints in its environment, and that jobs read every variable of it."""
    loaded = loaded_jobs(compose)
    problems = [f"{name}: {line}" for name, job in loaded.items() for line in job.lines()]
    given = {variable for name in loaded for variable in compose.services[name]["environment"]}
    texts = "".join(Path(job.file).read_text() for job in loaded.values())
    unread = {variable for variable in given - {LOCAL} if f"${{env:{variable}" not in texts}
    return problems + [f"{variable} is read by no job" for variable in sorted(unread)]


def brokers_are_the_broker(compose: Compose) -> list[str]:
    """Check that every client has an address that the broker advertises to containers."""
    problems = []
    kafka = next(each for each in compose.services.values() if repository(each) == KAFKA)
    advertised = re.findall(r"://([^,]+)", kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"])
    for name, service in compose.ours().items():
        servers = service["environment"].get("KAFKA_BOOTSTRAP_SERVERS")
        if servers not in advertised:
            problems.append(f"{name}: KAFKA_BOOTSTRAP_SERVERS: {servers} is none of {advertised}")
        elif servers.startswith("127."):
            problems.append(f"{name}: {servers} is the container itself")
    return problems


def topics_are_those_of_the_jobs(compose: Compose) -> list[str]:
    """What is made is what the jobs name; what is generated, one of them reads."""
    jobs = [loaded.job for loaded in loaded_jobs(compose).values() if loaded.job]
    wanted = {topic for topics in _collect_topics(jobs).values() for topic in topics}
    made = set()
    for name in parsed(compose.services["topics"]["command"]).jobs:  # type: ignore[union-attr]
        made |= {topic for topics in _collect_topics([load(name).job]).values() for topic in topics}
    problems = [f"topics: {topic} is not made" for topic in sorted(wanted - made)]
    problems += [f"topics: {topic} is of no job" for topic in sorted(made - wanted)]
    read = {topic for job in jobs for topic in job.source.subscribe}
    for name, service in compose.ours().items():
        if service["command"][0] == "generate":
            target = read_plan(parsed(service["command"])).target  # type: ignore[arg-type]
            assert isinstance(target, KafkaTarget)
            if target.topic not in read:
                problems.append(f"{name}: no job reads {target.topic}")
    return problems


def ports_are_listened_on(compose: Compose) -> list[str]:
    """A published port is loopback and the one the service has; no two are the same."""
    problems, published = [], []
    ports = {name: set(known) for name, known in PORTS.items()}
    exposed = set(map(int, re.findall(r"^EXPOSE (\d+)", compose.texts["dockerfile"], re.MULTILINE)))
    for name, loaded in loaded_jobs(compose).items():
        ports[name] = {loaded.job.metrics.port} if loaded.job else set()
        if ports[name] != exposed:
            problems.append(f"{name}: listens on {ports[name]}, the image exposes {exposed}")
    for name, service in compose.services.items():
        for port in service.get("ports", []):
            published.append(port["published"])
            if port.get("host_ip") != "127.0.0.1":
                problems.append(f"{name}: {port['published']} is not published on loopback")
            if port["target"] not in ports.get(name, set()):
                problems.append(f"{name}: {port['target']} is not one of {ports.get(name)}")
    return problems + [
        f"{port}: published twice" for port in set(published) if published.count(port) > 1
    ]


def mounts_are_there(compose: Compose) -> list[str]:
    """Check that what is mounted exists, and that what a job keeps is in a volume of its own."""
    problems, volumes = [], []
    for name, service in compose.services.items():
        targets = [mount["target"] for mount in service.get("volumes", [])]
        for mount in service.get("volumes", []):
            if mount["type"] == "volume":
                volumes.append(mount["source"])
            elif not Path(mount["source"]).exists():
                problems.append(f"{name}: {mount['source']} does not exist")
            elif not mount.get("read_only"):
                problems.append(f"{name}: {mount['target']} is not mounted read-only")
        for variable, value in (service.get("environment") or {}).items():
            if variable in KEPT and not any(
                f"{value}/".startswith(f"{target}/") for target in targets
            ):
                problems.append(f"{name}: {variable}: {value} is in no volume")
    return problems + [f"{name}: mounted twice" for name in set(volumes) if volumes.count(name) > 1]


def services_are_confined(compose: Compose) -> list[str]:
    """Check capabilities, users, bounds of memory, processors and processes, images' versions."""
    problems = []
    for name, service in compose.services.items():
        image = service["image"]
        rules = {
            "cap_drop": service.get("cap_drop") == ["ALL"],
            "security_opt": "no-new-privileges:true" in service.get("security_opt", []),
            "user": str(service.get("user", "0")).split(":")[0] not in {"0", "root", ""},
            "read_only": service.get("read_only") is True or repository(service) == KAFKA,
            "mem_limit": int(service.get("mem_limit", 0)) > 0,
            "cpus": float(service.get("cpus", 0)) > 0,
            "pids_limit": int(service.get("pids_limit", 0)) > 0,
            "logging": "max-size" in service.get("logging", {}).get("options", {}),
            "privileged": not service.get("privileged") and "network_mode" not in service,
            "image": bool(re.search(r":v?\d+\.\d+\.\d+$", image)),
        }
        problems += [f"{name}: {rule}" for rule, kept in rules.items() if not kept]
        if repository(service) == OURS and image != f"{OURS}:{__version__}":
            problems.append(f"{name}: {image} is not version {__version__}")
    return problems


def health_orders_the_start(compose: Compose) -> list[str]:
    """Check that a service waits for another's health or end, and that the other has that."""
    problems = []
    for name, service in compose.services.items():
        check = service.get("healthcheck") or {}
        lasting = service.get("restart") != "no" and name not in generators(compose)
        has_own = repository(service) == OURS and not check.get("disable")
        if lasting and not check.get("test") and not has_own:
            problems.append(f"{name}: no health check")
        for port in re.findall(r":(\d{4,5})\b", " ".join(check.get("test") or [])):
            if int(port) not in PORTS[name]:
                problems += [f"{name}: its health check asks port {port}"]
        for other, wanted in (service.get("depends_on") or {}).items():
            ends = compose.services[other].get("restart") == "no"
            right = "service_completed_successfully" if ends else "service_healthy"
            if wanted["condition"] != right:
                problems.append(f"{name}: depends on {other} as {wanted['condition']}")
    if "METRICS_PORT" not in " ".join(dockerfile_health_check()):
        problems.append("Dockerfile: its health check does not ask the metrics port")
    needed = {"topics": {"kafka"}, "prometheus": {"alertmanager"}, "grafana": {"prometheus"}}
    needed |= {name: {"topics"} for name in (*job_services(compose.services), *generators(compose))}
    for name, others in needed.items():
        if set(compose.services[name].get("depends_on") or {}) != others:
            problems.append(f"{name}: must wait for {', '.join(others)}")
    return problems


def generators(compose: Compose) -> list[str]:
    """List the services that generate."""
    return [name for name, service in compose.ours().items() if service["command"][0] == "generate"]


def targets_are_services(compose: Compose) -> list[str]:
    """Check that Prometheus scrapes every job, knows Alertmanager, and has its rules mounted."""
    problems, scraped = [], set()
    settings = yaml.safe_load(compose.texts["prometheus"])
    ports = {name: set(known) for name, known in PORTS.items()}
    for name, loaded in loaded_jobs(compose).items():
        ports[name] = {loaded.job.metrics.port} if loaded.job else set()
    scrapes = settings["scrape_configs"] + settings["alerting"]["alertmanagers"]
    for target in [
        t for scrape in scrapes for static in scrape["static_configs"] for t in static["targets"]
    ]:
        name, _, port = target.partition(":")
        scraped.add(name)
        if int(port) not in ports.get(name, set()):
            problems.append(f"prometheus.yml: {target} is no service's address")
    problems += [
        f"prometheus.yml: {name} is not scraped"
        for name in ports.keys() - scraped - {"kafka", "grafana"}
    ]
    mounts = {
        mount["target"]: mount["source"] for mount in compose.services["prometheus"]["volumes"]
    }
    for pattern in settings["rule_files"]:
        folder, _, names = pattern.rpartition("/")
        if folder not in mounts or not list(Path(mounts[folder]).glob(names)):
            problems.append(f"prometheus.yml: {pattern} is not mounted")
    return problems


def failures_are_scraped(compose: Compose) -> list[str]:
    """Check that a failed job serves its metrics for three scrapes, so that they are recorded."""
    problems = []
    interval = seconds(yaml.safe_load(compose.texts["prometheus"])["global"]["scrape_interval"])
    for name, loaded in loaded_jobs(compose).items():
        hold_seconds = loaded.job.metrics.hold_after_failure.amount / 1e6 if loaded.job else 0.0
        if hold_seconds < 3 * interval:
            problems.append(f"{name}: stays {hold_seconds:g} s, is scraped every {interval:g} s")
    return problems


def grafana_is_provisioned(compose: Compose) -> list[str]:
    """Its data source is Prometheus, its dashboards are mounted, nobody is anonymous."""
    problems = []
    grafana = compose.services["grafana"]
    mounts = {mount["target"]: Path(mount["source"]) for mount in grafana["volumes"]}
    (source,) = yaml.safe_load(compose.texts["datasource"])["datasources"]
    if source["url"] != "http://prometheus:9090":
        problems.append(f"data source: {source['url']} is not the service prometheus")
    if not source["isDefault"]:
        problems.append("data source: is not the default one")
    (provider,) = yaml.safe_load(compose.texts["provider"])["providers"]
    if not list(mounts.get(provider["options"]["path"], Path("nothing")).glob("*.json")):
        problems.append(f"dashboards: none at {provider['options']['path']}")
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    if not (mounts.get(str(home.parent), Path("nothing")) / home.name).exists():
        problems.append(f"home dashboard: {home} is not mounted")
    for folder, target in (("datasources", "datasource"), ("dashboards", "provider")):
        mounted = mounts.get(f"/etc/grafana/provisioning/{folder}")
        if mounted != (ROOT / FILES[target]).parent:
            problems.append(f"provisioning: {folder} is not mounted")
    closed = ("GF_AUTH_ANONYMOUS_ENABLED", "GF_USERS_ALLOW_SIGN_UP")
    values = {variable: grafana["environment"].get(variable) for variable in closed}
    return problems + [f"{name} is not false" for name, value in values.items() if value != "false"]


def the_image_is_built_once(compose: Compose) -> list[str]:
    """Check that the image is built of this Dockerfile, once, in a service of every profile."""
    builders = {name: each["build"] for name, each in compose.services.items() if "build" in each}
    problems = [] if list(builders) == ["topics"] else [f"built by {list(builders)}"]
    for build in builders.values():
        if not (Path(build["context"]) / build["dockerfile"]).samefile(ROOT / FILES["dockerfile"]):
            problems += [f"built of {build['dockerfile']}"]
    if compose.services["topics"].get("profiles"):
        problems += ["topics: is not always there"]
    return problems


def secrets_are_asked_for(compose: Compose) -> list[str]:
    """Check that each variable is required and in the example, and passwords are in no file."""
    problems = []
    example = dict(re.findall(r"^(\w+)=(.*)$", compose.texts["example"], re.MULTILINE))
    named = re.findall(r"(?<!\$)\$\{(\w+)([^}]*)\}", compose.texts["compose"])
    for name, rest in named:
        if not rest.startswith(":?"):
            problems.append(f"{name}: is not required")
        if name not in example:
            problems.append(f"{name}: is not in .env.example")
    problems += [
        f".env.example: {name} is read by nothing"
        for name in example.keys() - {n for n, _ in named} - {"COMPOSE_PROFILES"}
    ]
    problems += [
        f".env.example: {name} has a value"
        for name in example
        if "PASSWORD" in name and example[name]
    ]
    written = re.findall(
        r"^\s*\w*(?:PASSWORD|SECRET)\w*: *(\S.*)$", compose.texts["compose"], re.MULTILINE
    )
    return problems + [
        f"a password is written: {text}" for text in written if not text.startswith("${")
    ]


CHECKS: list[Callable[[Compose], list[str]]] = [
    commands_are_understood,
    jobs_lint_in_their_environment,
    brokers_are_the_broker,
    topics_are_those_of_the_jobs,
    ports_are_listened_on,
    mounts_are_there,
    services_are_confined,
    health_orders_the_start,
    targets_are_services,
    failures_are_scraped,
    grafana_is_provisioned,
    the_image_is_built_once,
    secrets_are_asked_for,
]
