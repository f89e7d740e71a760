"""Runs docker-compose.yml without an engine: each service's command natively, in the same order.

What is run is read from the file, as Compose itself resolves it; only addresses, ports and mounted
paths are replaced, and of images that are not ours the program is the machine's own. A service
waits for what it depends on, by the health checks of the file. At the end Prometheus is asked
whether it has its rules, an Alertmanager, and the metrics of every job. A service whose program
this machine does not have (Grafana, mostly) is named and left out; only Prometheus must be there
where there are jobs, as there is nothing to ask without it.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.compose.compose_file import (
    KAFKA,
    OURS,
    ROOT,
    Native,
    Service,
    dockerfile_health_check,
    ends_by_itself,
    in_order,
    job_services,
    repository,
    resolved,
    seconds,
)
from tests.compose.http_checks import answers, get, loaded_rules, query_api, sample
from unskew.config.errors import ExternalError, UnskewError
from unskew.jobs.local.child_processes import Child
from unskew.jobs.local.jars import fetch_jars
from unskew.jobs.local.java import find_java

READY_SECONDS = 600.0
_ALERTMANAGER_SECONDS = 15.0
_CLUSTER = "dry-run-of-compose-000"
_GRAFANA = "grafana/grafana"
_STOP_REQUESTED = Event()
# By the repository of an image: the names that its program has on a machine without the image.
_PROGRAMS = {
    "prom/prometheus": ("prometheus",),
    "prom/alertmanager": ("alertmanager", "prometheus-alertmanager"),
    _GRAFANA: ("grafana",),
}


def _ask_to_end(child: Child) -> None:
    """Send SIGTERM and return: the container has its own time to end."""
    child._process.terminate()  # the guard hands it on


class Dry:
    """The services that run."""

    def __init__(self, services: dict[str, Service], folder: Path) -> None:
        self.services = services
        self.native = Native(services, folder)
        self.children: dict[str, Child] = {}
        self._folder = folder
        # The entry point finds the environment where it would in the image.
        (folder / "venv").symlink_to(sys.prefix)

    def start(self, name: str) -> bool:
        """Start a service once what it depends on is ready; False where it cannot run here."""
        service = self.services[name]
        for other, condition in (service.get("depends_on") or {}).items():
            self.wait(other, condition["condition"])
        self.native.mount(name)
        command = self._command(name)
        if command is None:
            return False
        environment = {
            **os.environ,
            **self.native.environment(name),
            "UNSKEW_ROOT": str(self._folder),
        }
        if repository(service) == _GRAFANA:
            environment |= self._image_of_grafana(name)
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        self.children[name] = Child(command, folder / "log", env=environment)
        return True

    def _command(self, name: str) -> list[str] | None:
        service = self.services[name]
        words = [self.native.text(name, word) for word in service.get("command") or []]
        image = repository(service)
        if image == OURS:
            return ["/bin/sh", str(ROOT / "deploy" / "entrypoint.sh"), *words]
        if image == KAFKA:
            return self._kafka(name)
        program = own_program(service)
        if image == _GRAFANA and program:
            words = ["server", "--homepath", str(grafana_home(Path(program).resolve()))]
        return [program, *words] if program else None

    def _kafka(self, name: str) -> list[str]:
        """What the image does: settings from variables, a formatted folder, the server."""
        given = self.native.environment(name)
        heap = given.pop("KAFKA_HEAP_OPTS").split()
        settings = {
            variable.removeprefix("KAFKA_").lower().replace("_", "."): value
            for variable, value in given.items()
        }
        properties = self._folder / name / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = [str(find_java()), *heap, "-cp", ":".join(map(str, fetch_jars("broker")))]
        form = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties)]
        done = subprocess.run([*java, *form], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ExternalError(f"{name}: {done.stdout}{done.stderr}")
        return [*java, "kafka.Kafka", str(properties)]

    def _image_of_grafana(self, name: str) -> dict[str, str]:
        """The settings that the image has by itself."""
        return {
            "GF_SERVER_HTTP_ADDR": "127.0.0.1",
            "GF_SERVER_HTTP_PORT": str(self.native.port(name, 3000)),
            "GF_PATHS_PROVISIONING": str(self.native.path_of(name, "/etc/grafana/provisioning")),
            "GF_PATHS_DATA": str(self.native.path_of(name, "/var/lib/grafana")),
            "GF_PATHS_PLUGINS": str(self.native.path_of(name, "/var/lib/grafana/plugins")),
            "GF_PATHS_LOGS": str(self.native.path_of(name, "/var/log/grafana")),
        }

    def wait(self, name: str, condition: str) -> None:
        """Wait until a service is in the condition that another asks for."""
        if name not in self.children:
            return  # its program is not on this machine, which is reported already
        began = time.monotonic()
        if "completed" in condition:
            code = self._ended(name)
            if code != 0:
                raise ExternalError(f"{name}: ended with {code}", *self.children[name].log_tail())
        elif self.services[name].get("healthcheck") != {"disable": True}:
            self.children[name].wait_until(lambda: self._healthy(name), name, READY_SECONDS)
        if time.monotonic() - began > 0.1:
            say(f"{name}: {condition} after {time.monotonic() - began:.1f} s")

    def _ended(self, name: str) -> int:
        """Its exit code, once it has ended by itself."""
        child, deadline = self.children[name], time.monotonic() + READY_SECONDS
        while child.running:
            raise_if_stopped()
            if time.monotonic() > deadline:
                rule = f"{name}: has not ended within {READY_SECONDS:.0f} s"
                raise ExternalError(rule, *child.log_tail())
            time.sleep(0.05)
        return child.wait()

    def _healthy(self, name: str) -> bool:
        raise_if_stopped()
        check = self.services[name].get("healthcheck")
        if check is None:
            environment = {**os.environ, **self.native.environment(name)}
            words = [sys.executable, *dockerfile_health_check()[1:]]
            done = subprocess.run(words, env=environment, capture_output=True, check=False)
            return done.returncode == 0
        program, *words = (self.native.text(name, word) for word in check["test"][1:])
        if Path(program).name == "wget":
            return answers(words[-1])
        assert Path(program).name == "kafka-broker-api-versions.sh", program
        client = AdminClient({"bootstrap.servers": words[-1], "log_level": 0})
        try:
            return bool(client.list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def stop(self) -> list[str]:
        """End them all, the last first, as `docker compose down` does; what went wrong."""
        wrong = []
        for name, child in reversed(self.children.items()):
            service, was_running = self.services[name], child.running
            _ask_to_end(child)
            with suppress(subprocess.TimeoutExpired):
                child.wait(seconds(service.get("stop_grace_period", "10s")))
            tail = child.log_tail()
            child.stop()
            code = child.wait()
            early = not was_running and not ends_by_itself(service)
            if early or (code and repository(service) == OURS):
                wrong += [f"{name}: ended with {code}", *tail]
        self.children.clear()
        return wrong


def own_program(service: Service) -> str | None:
    """This machine's program of an image that is not ours."""
    return next(filter(None, map(shutil.which, _PROGRAMS[repository(service)])), None)


def grafana_home(program: Path) -> Path:
    """The folder of an installed Grafana."""
    homes = (path for path in program.parents if (path / "conf" / "defaults.ini").exists())
    home = next(homes, None)
    if home is None:
        raise ExternalError(f"{program}: no conf/defaults.ini in any folder above it")
    return home


def check_grafana(dry: Dry, name: str) -> None:
    """Check that it asks for the password, reaches Prometheus and has every dashboard."""
    url = f"http://127.0.0.1:{dry.native.port(name, 3000)}"
    given = dry.native.environment(name)
    user = f"{given['GF_SECURITY_ADMIN_USER']}:{given['GF_SECURITY_ADMIN_PASSWORD']}"
    if answers(f"{url}/api/search"):
        raise ExternalError(f"{name}: shows its dashboards without a password")
    health = get(f"{url}/api/datasources/uid/prometheus/health", user)
    if health["status"] != "OK":
        raise ExternalError(f"{name}: its data source: {health['message']}")
    files = {json.loads(path.read_text())["uid"] for path in (ROOT / "dashboards").glob("*.json")}
    missing = files - {listed["uid"] for listed in get(f"{url}/api/search?type=dash-db", user)}
    if missing:
        raise ExternalError(f"{name}: has no dashboard {', '.join(sorted(missing))}")
    say(f"{name}: has {len(files)} dashboards, and its data source answers")


def check_alertmanager(dry: Dry, prometheus: str) -> None:
    """Check that Prometheus sends its alerts to the Alertmanager that runs."""
    address = f"127.0.0.1:{dry.native.port('alertmanager', 9093)}"
    deadline = time.monotonic() + _ALERTMANAGER_SECONDS
    while True:
        raise_if_stopped()
        known = [
            manager["url"]
            for manager in query_api(prometheus, "alertmanagers")["activeAlertmanagers"]
        ]
        if any(f"//{address}/" in url for url in known):
            say("prometheus: sends its alerts to alertmanager")
            return
        if time.monotonic() > deadline:
            receivers = ", ".join(known) or "no Alertmanager"
            raise ExternalError(f"prometheus: sends its alerts to {receivers}, not to {address}")
        time.sleep(0.5)


def wait_for_data(dry: Dry, prometheus: str) -> None:
    """Wait until Prometheus has records of every job that runs, from the targets in its file."""
    waiting = {
        name: job for name, job in job_services(dry.services).items() if name in dry.children
    }
    deadline = time.monotonic() + READY_SECONDS
    while waiting:
        raise_if_stopped()
        for name, job in list(waiting.items()):
            if not dry.children[name].running:
                raise ExternalError(f"{name}: ended by itself", *dry.children[name].log_tail())
            records = sample(prometheus, f'unskew_records_total{{query="{job}",job="unskew"}} > 0')
            if records is not None:
                say(f"{name}: Prometheus has {records:.0f} records of {job}")
                del waiting[name]
        if time.monotonic() > deadline:
            missing = ", ".join(waiting)
            raise ExternalError(
                f"prometheus: nothing of {missing} within {READY_SECONDS:.0f} s",
                *(line for name in waiting for line in dry.children[name].log_tail(3)),
            )
        time.sleep(0.5)


def run(file: Path, profile: str, wanted: list[str]) -> None:
    """Run the services, wait for their data, stop them."""
    services = resolved(file, profile)
    order = in_order(services, wanted)
    check_that_prometheus_can_be_asked(services, order)
    with ExitStack() as stack:
        # ignore_cleanup_errors: a process that ends may still write into its folder.
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="unskew-compose-", ignore_cleanup_errors=True)
        )
        dry = Dry(services, Path(folder))
        stack.callback(dry.stop)
        for name in order:
            image = services[name]["image"]
            if dry.start(name):
                say(f"{name}: started ({image})")
            else:
                say(f"{name}: left out, as this machine has no program of {image}")
        wait_for_all(dry)
        wrong = dry.stop()
        if wrong:
            raise ExternalError(*wrong)


def check_that_prometheus_can_be_asked(services: dict[str, Service], order: list[str]) -> None:
    """Fail where nothing of a job could be checked."""
    jobs = [name for name in job_services(services) if name in order]
    if jobs and "prometheus" not in order:
        say(f"prometheus: not started, so the data is not checked of {', '.join(jobs)}")
    elif jobs and own_program(services["prometheus"]) is None:
        missing = services["prometheus"]["image"]
        rule = f"this machine has no program of {missing} to ask for the data of {', '.join(jobs)}"
        raise ExternalError(f"prometheus: {rule}")


def wait_for_all(dry: Dry) -> None:
    """Wait until what ends has ended, the rest is healthy, and the data has arrived."""
    for name in dry.children:
        dry.wait(name, "completed" if ends_by_itself(dry.services[name]) else "healthy")
    if "prometheus" in dry.children:
        prometheus = f"http://127.0.0.1:{dry.native.port('prometheus', 9090)}"
        if "alertmanager" in dry.children:
            check_alertmanager(dry, prometheus)
        wait_for_data(dry, prometheus)
        say(f"prometheus: has {loaded_rules(prometheus)} rules")
    if "grafana" in dry.children:
        check_grafana(dry, "grafana")


def raise_if_stopped() -> None:
    """Raise KeyboardInterrupt here after Ctrl-C or SIGTERM, not within a client's C code."""
    if _STOP_REQUESTED.is_set():
        raise KeyboardInterrupt


def say(line: str) -> None:
    """Progress."""
    print(f"compose-dry: {line}", flush=True)


def main() -> int:
    """Run what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(prog="compose-dry", description=__doc__)
    parser.add_argument("--file", type=Path, default=ROOT / "docker-compose.yml")
    parser.add_argument("--profile", default="demo", help="the profile (default: demo)")
    parser.add_argument(
        "services", nargs="*", help="only these and what they depend on (default: all)"
    )
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _STOP_REQUESTED.set())
    try:
        run(arguments.file, arguments.profile, arguments.services)
    except KeyboardInterrupt:
        print("compose-dry: interrupted", file=sys.stderr)
        return 130
    except UnskewError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
