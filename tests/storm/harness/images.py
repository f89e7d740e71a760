"""Crash images: what a job has written at one instant, copied while every process stands still.

A job that goes on from such a copy sees what it would see if everything had been killed at once,
and many copies come from one run. Files and tables are copied; Kafka cannot be, so worlds with
images write to files or PostgreSQL.
"""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from psycopg import sql

from tests.storm.harness.in_process import Jvm
from tests.storm.harness.stage import Stage

FOLDERS = ("checkpoint", "results", "also", "dead")
_COPY = ("CREATE TABLE {} (LIKE {} INCLUDING ALL)", "INSERT INTO {} SELECT * FROM {}")


@dataclass
class Image:
    """A stage of its own, as another one was at one instant."""

    stage: Stage
    point: str


@contextmanager
def frozen(jvm: Jvm) -> Iterator[None]:
    """The JVM and its Python processes stand still."""
    everyone = [jvm.process, *jvm.process.children(recursive=True)]
    try:
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
        yield
    finally:
        for process in everyone:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


def image_of(stage: Stage, jvm: Jvm, number: int, point: str) -> Image:
    """Copy what the stage's job has written, as it is at this instant."""
    copy = stage.copy(f"image{number}")
    with frozen(jvm):
        for name in FOLDERS:
            source = stage.folder / name
            if source.exists():
                shutil.copytree(source, copy.folder / name, copy_function=_copied)
        if stage.world.sink == "postgres":
            with stage.services.postgres.connect() as connection:
                for text in _COPY:
                    names = (sql.Identifier(copy.table), sql.Identifier(stage.table))
                    connection.execute(sql.SQL(text).format(*names))
    return Image(copy, point)


def _copied(source: str, target: str) -> str:
    # With its times: they say which files are the newest.
    return str(shutil.copy2(source, target))


def files_of(checkpoint: Path) -> list[Path]:
    """The files of a checkpoint, the newest first."""
    files = [path for path in checkpoint.rglob("*") if path.is_file()]
    return sorted(files, key=lambda path: (-path.stat().st_mtime_ns, str(path)))
