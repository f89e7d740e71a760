"""A local Kafka: one KRaft node as a guarded child, for demos, tests and trying things out."""

import base64
import shutil
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from unskew.config.errors import ExternalError
from unskew.jobs.kafka.admin import NoBrokerError, admin
from unskew.jobs.local.child_processes import Child, find_free_ports, is_listening
from unskew.jobs.local.jars import fetch_jars, find_spark_jar
from unskew.jobs.local.java import find_java

_START_SECONDS = 60.0
_ANSWER_SECONDS = 5.0
_PORT_TRIES = 3
# Small and quick to start: it serves one machine's demo or test, not a production load.
_JVM = ("-Xms64m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LOG4J = """status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %c{1} %m %rEx{1}%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
"""


@dataclass(frozen=True)
class Identity:
    """How a broker shows who it is over TLS: PEM files, the key in PKCS 8 without a passphrase."""

    certificate: Path
    key: Path


class Broker:
    """Kafka on a loopback port, ready when the constructor returns; stop it, or use `with`.

    With an `identity` it also listens on `secure_address`, over TLS and for SCRAM users only, who
    may do what access rules allow; `address` stays plain, and its clients are superusers.
    """

    def __init__(
        self, port: int | None = None, data: Path | None = None, identity: Identity | None = None
    ) -> None:
        self._jars = [*_log_jars(), *fetch_jars("broker")]
        self._identity = identity
        for attempt in range(1, _PORT_TRIES + 1):
            try:
                self._start(port, data)
            except ExternalError as error:
                # Another process may have taken the port since it was found free.
                taken = port is None and "Address already in use" in str(error)
                if not taken or attempt == _PORT_TRIES:
                    raise
            else:
                break

    def _start(self, port: int | None, data: Path | None) -> None:
        free = find_free_ports(3)
        self.port, controller = port or free[0], free[1]
        self.address = f"127.0.0.1:{self.port}"
        self.secure_address = f"127.0.0.1:{free[2]}" if self._identity else ""
        if is_listening(self.port):
            raise ExternalError(f"broker: port {self.port} is in use; choose another, or none")
        try:
            self._home = Path(tempfile.mkdtemp(prefix="unskew-broker-"))
        except OSError as error:  # where all disks are full it has a text of its own
            raise ExternalError(
                f"broker: no temporary folder: {error.strerror or error}"
            ) from error
        try:
            self._start_in(self._home, data, controller)
        except BaseException:
            shutil.rmtree(self._home, ignore_errors=True)
            raise

    def _start_in(self, home: Path, data: Path | None, controller: int) -> None:
        folder = (data or home / "data").absolute()
        try:
            secure = _configure_secure_listener(self.secure_address, self._identity)
            properties = _write_files(home, folder, self.port, controller, secure)
        except OSError as error:
            raise ExternalError(f"broker: {folder}: {error.strerror}") from error
        log4j = f"-Dlog4j2.configurationFile={home}/log4j2.properties"
        command = [str(find_java()), *_JVM, log4j, "-cp", ":".join(map(str, self._jars))]
        command += ["kafka.Kafka", str(properties)]
        self.child = Child(command, home / "broker.log", remove=home)
        try:
            self.child.wait_until(self._does_answer, "broker", _START_SECONDS)
        except BaseException:
            self.child.stop()
            raise

    def _does_answer(self) -> bool:
        """Does it answer a request? Asked only once the port is open."""
        if not is_listening(self.port):
            return False
        try:
            with admin(self.address, _ANSWER_SECONDS) as client:
                client.count_partitions()
        except NoBrokerError:
            return False
        return True

    def stop(self) -> None:
        """End the broker and remove its temporary folder."""
        self.child.stop()
        # The guard does this too, unless it was killed itself.
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def create_topics(self, names: Iterable[str], partitions: int = 1, **settings: str) -> None:
        """Make topics; one that is there already is left as it is."""
        create_topics(self.address, names, partitions, **settings)

    def add_user(self, name: str, password: str) -> None:
        """A user of the secure listener, by SCRAM-SHA-512."""
        with admin(self.address) as client:
            client.add_user(name, password)


def create_topics(address: str, names: Iterable[str], partitions: int = 1, **settings: str) -> None:
    """Make topics; one that is there already is left as it is."""
    configs = {name.replace("_", "."): value for name, value in settings.items()}
    with admin(address) as client:
        for name in names:
            client.create(name, configs, partitions, replicas=1)


def _log_jars() -> list[Path]:
    """Kafka's own jars lack what takes its log to log4j; Spark's have it, of the same version."""
    return [find_spark_jar("slf4j-api-2.*.jar"), find_spark_jar("log4j-slf4j2-impl-*.jar")]


def _configure_secure_listener(address: str, identity: Identity | None) -> dict[str, object]:
    """Write the settings of the listener for users, if there is one."""
    if identity is None:
        return {}
    return {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _join_lines(identity.certificate),
        "ssl.keystore.key": _join_lines(identity.key),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # clients of the plain (loopback) listener
        "listeners": f"SASL_SSL://{address}",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL"
        ),
    }


def _join_lines(pem: Path) -> str:
    """Write a PEM file as a value of a properties file."""
    return pem.read_text().strip().replace("\n", "\\n")


def _write_files(
    home: Path, folder: Path, port: int, controller: int, secure: dict[str, object]
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    marks = folder / "meta.properties"
    if not marks.exists():
        # What Kafka's own `format` command would write, without starting a JVM for it.
        marks.write_text(
            f"version=1\ncluster.id={_make_short_id()}\nnode.id=1\ndirectory.id={_make_short_id()}\n"
        )
    (home / "log4j2.properties").write_text(_LOG4J)
    properties = home / "server.properties"
    plain = f"PLAINTEXT://127.0.0.1:{port}"
    clients = f"{plain},{secure['listeners']}" if secure else plain
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        **secure,
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": clients,
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder,
        "num.partitions": 1,
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 2,
        "num.io.threads": 2,
        "log.cleaner.dedupe.buffer.size": 2 * 1024 * 1024,
        "log.segment.delete.delay.ms": 1000,
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return properties


def _make_short_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
