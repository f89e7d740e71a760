"""The Kafka admin client: asks a cluster for topics and settings, and creates topics and users.

It is kafka-python's: calls block and raise the broker's own errors, and a topic can be used when
it is made. Records go through confluent-kafka: see decision 9.
"""

import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from unskew.grouping.options.suggestions import find_nearest

BROKERS_DEFAULT = -1
"""Stands for the number of partitions, or replicas, in the brokers' own settings."""
_REQUEST_SECONDS = 20.0
_RETRY_SECONDS = 0.2
_MAKES_TOPICS = "unskew topics JOB"
_TOPICS_SHOWN = 8


class NoBrokerError(Exception):
    """No broker answered, or it stopped answering."""


class TopicError(Exception):
    """A topic that the brokers did not make; the text is their reason."""


class Admin:
    """An open connection to the brokers of one cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def count_partitions(self) -> dict[str, int]:
        """Count the partitions of each topic that is there."""
        return {topic["name"]: len(topic["partitions"]) for topic in self._client.describe_topics()}

    def create(
        self,
        topic: str,
        settings: Mapping[str, str],
        partitions: int = BROKERS_DEFAULT,
        replicas: int = BROKERS_DEFAULT,
    ) -> bool:
        """Make a topic and wait until it can be used; False if it was there, and stays as it is."""
        from kafka.errors import BrokerResponseError, TopicAlreadyExistsError  # noqa: PLC0415

        wanted = {
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": dict(settings),
        }
        try:
            self._client.create_topics({topic: wanted}, wait_for_metadata=True)
        except TopicAlreadyExistsError:
            return False
        except BrokerResponseError as error:
            raise TopicError(str(error)) from error
        return True

    def allows_topic_creation(self) -> bool:
        """Do the brokers make a topic when it is written to? Unknown counts as yes."""
        from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415
        from kafka.errors import KafkaError  # noqa: PLC0415

        try:
            broker = str(self._client.describe_cluster()["brokers"][0]["broker_id"])
            resource = ConfigResource(ConfigResourceType.BROKER, broker)
            answer = self._client.describe_configs([resource], config_filter="all")
        except KafkaError:
            return True
        entry = answer["broker"][broker].get("auto.create.topics.enable")
        return entry is None or entry["value"] == "true"

    def add_user(self, name: str, password: str) -> None:
        """A user who logs in by SCRAM-SHA-512."""
        from kafka.admin import ScramMechanism, UserScramCredentialUpsertion  # noqa: PLC0415

        user = UserScramCredentialUpsertion(name, ScramMechanism.SCRAM_SHA_512, password)
        answers = self._client.alter_user_scram_credentials([user])
        assert answers == {name: None}, answers


@contextmanager
def admin(servers: str, seconds: float = _REQUEST_SECONDS) -> Iterator[Admin]:
    """Connect within `seconds`, then disconnect; NoBrokerError if no broker answers."""
    _wait_for_port(servers.split(","), seconds)
    from kafka import KafkaAdminClient  # noqa: PLC0415 - half a second that few commands need
    from kafka.errors import KafkaConnectionError, KafkaTimeoutError  # noqa: PLC0415

    try:
        client = KafkaAdminClient(
            bootstrap_servers=servers.split(","),
            client_id="unskew",
            bootstrap_timeout_ms=round(seconds * 1000),
            request_timeout_ms=round(seconds * 1000),
        )
        try:
            yield Admin(client)
        finally:
            client.close()
    except (KafkaTimeoutError, KafkaConnectionError) as error:
        raise NoBrokerError(str(error)) from error


def _wait_for_port(servers: list[str], seconds: float) -> None:
    """Return when one of the servers accepts a connection.

    kafka-python leaves the sockets of its failed attempts to the garbage collector.
    """
    deadline = time.monotonic() + seconds
    while True:
        for server in servers:
            host, _, port = server.strip().rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
            except OSError as error:
                reason = str(error)
            else:
                return
        if time.monotonic() > deadline:
            raise NoBrokerError(reason)
        time.sleep(_RETRY_SECONDS)


def describe_no_answer(
    where: str, seconds: float, reason: str = "", check: str = "the address"
) -> str:
    """Write the message about brokers that do not answer."""
    return f"{where}: no broker answers within {seconds:.0f} s{reason}; start it, or check {check}"


def describe_missing_topic(where: str, topic: str, there: Iterable[str]) -> str:
    """Write the message about a topic that does not exist, given those that do."""
    known = sorted(name for name in there if not name.startswith("__"))
    near = find_nearest(topic, known)
    advice = f"{_MAKES_TOPICS} makes it; there are {_list_names(known)}"
    if near:
        advice = f'did you mean "{near}"? Otherwise {_MAKES_TOPICS} makes it'
    return f"{where}: no such topic; {advice}"


def _list_names(names: list[str]) -> str:
    if not names:
        return "none"
    more = len(names) - _TOPICS_SHOWN
    return ", ".join(names[:_TOPICS_SHOWN]) + (f" and {more} more" if more > 0 else "")
