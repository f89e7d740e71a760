"""The broker and the database of a storm, each started when a world first needs it."""

import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import patch

import psutil

from tests.support.running.postgres_server import PostgresServer, postgres_server
from unskew.jobs.kafka import broker as kafka_broker

_START_SECONDS = 600.0


def start_broker(port: int | None = None, folder: Path | None = None) -> kafka_broker.Broker:
    """Start a broker; beside a storm a machine may be so busy that a minute is too short."""
    with patch.object(kafka_broker, "_START_SECONDS", _START_SECONDS):
        return kafka_broker.Broker(port, folder)


class Services:
    """A broker and a PostgreSQL server that can go away and come back."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._broker: kafka_broker.Broker | None = None
        self._port: int | None = None
        self._postgres: PostgresServer | None = None

    @property
    def broker(self) -> kafka_broker.Broker:
        """The broker."""
        if self._broker is None:
            self.broker_back()
            self._stack.callback(self._stop_broker)
        assert self._broker is not None
        return self._broker

    def broker_back(self) -> None:
        """Start the broker, or start it again on the same port over the same data."""
        self._broker = start_broker(self._port, self._folder / "broker")
        self._port = self._broker.port

    def broker_away(self, *, kill: bool) -> None:
        """End the broker: in order, or by SIGKILL."""
        running = self.broker
        if kill:
            # The broker's parent is a guard, which ends with it.
            for child in psutil.Process(running.child._process.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    child.send_signal(signal.SIGKILL)
            running.child.wait(30)
        running.stop()

    def _stop_broker(self) -> None:
        if self._broker is not None:
            self._broker.stop()

    @property
    def postgres(self) -> PostgresServer:
        """The database."""
        if self._postgres is None:
            self._postgres = self._stack.enter_context(postgres_server())
        return self._postgres
