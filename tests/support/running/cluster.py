"""A standalone Spark cluster on the loopback, from the parts that come with pyspark.

On Linux, where all of 127.0.0.0/8 is the loopback.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from tests.support.running.processes import children_named
from unskew.jobs.local.java import find_java_home

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC"
"""For a JVM that lives for minutes, half of which it would spend on compiling better code."""
_START_SECONDS = 60.0
_SPARK = Path(pyspark.__file__).parent


class Cluster:
    """A master and workers, each a process; by default a worker has an executor of two cores."""

    def __init__(self, url: str, workers: list[int]) -> None:
        self.url = url
        self._workers = workers

    def settings(self) -> dict[str, str]:
        """Settings of a session that runs its tasks here, whose executors come and go."""
        return {
            "spark.master": self.url,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            # As with a local master: the executors are on this machine, and have its Python.
            "spark.python.daemon.module": "unskew.jobs.engine.python_daemon",
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            # By default two minutes go by until a lost executor's shuffle files are given up.
            "spark.shuffle.io.connectionTimeout": "15s",
            "spark.shuffle.io.retryWait": "1s",
        }

    def executors(self) -> list[psutil.Process]:
        """The JVMs that run tasks now, in the order of their workers."""
        return [jvm for pid in self._workers for jvm in children_named("java", pid)]


def python_workers(jvm: psutil.Process) -> list[psutil.Process]:
    """The Python processes that work for a JVM: forked by their daemon, which is its child."""
    return [
        worker
        for daemon in children_named("python", jvm.pid)
        for worker in children_named("python", daemon.pid)
    ]


@contextmanager
def cluster(
    folder: Path, workers: int = 2, *, cores: int = 2, memory: str = "1g"
) -> Iterator[Cluster]:
    """Start one; whatever happens, all of it ends."""
    with ExitStack() as stack:
        url = f"spark://127.0.0.1:{_free_port()}"
        port = url.rpartition(":")[2]
        words = ["--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
        stack.enter_context(_spark_class("master.Master", words, folder / "master"))
        _wait_for_port(int(port))
        started = []
        for number in range(workers):
            home = folder / f"worker-{number}"
            # Each on a host of its own: Spark makes no second copy of a task on the same one.
            host = f"127.0.0.{number + 1}"
            words = ["--host", host, "--webui-port", "0", "--cores", str(cores), "--memory", memory]
            words += ["--work-dir", str(home), url]
            started.append(stack.enter_context(_spark_class("worker.Worker", words, home)))
        yield Cluster(url, started)


@contextmanager
def _spark_class(name: str, words: list[str], folder: Path) -> Iterator[int]:
    folder.mkdir(parents=True)
    settings = {
        "JAVA_HOME": str(find_java_home()),
        "SPARK_HOME": str(_SPARK),
        "SPARK_LOCAL_IP": words[words.index("--host") + 1],
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words],
            env={**os.environ, **settings},
            stdout=log,
            stderr=log,
        )
    try:
        yield process.pid
    finally:
        processes = [psutil.Process(process.pid), *psutil.Process(process.pid).children(True)]
        process.terminate()
        _, left = psutil.wait_procs(processes, 10)
        for survivor in left:
            survivor.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, "the master does not answer"
            time.sleep(0.2)
        else:
            return
