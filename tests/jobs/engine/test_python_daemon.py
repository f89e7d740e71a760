"""The daemon of Python workers, beside a JVM that ends at any moment."""

import os
import socket
import struct
import subprocess
import sys
import tempfile

DAEMON = [sys.executable, "-m", "unskew.jobs.engine.python_daemon", "pyspark.worker"]


def test_a_jvm_that_ends_while_workers_start_leaves_no_trace() -> None:
    # The path of a socket may have some hundred characters: a test's own folder is too deep.
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": folder,
            "SPARK_REUSE_WORKER": "1",
        }
        with subprocess.Popen(
            DAEMON,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as daemon:
            assert daemon.stdout is not None
            (size,) = struct.unpack(">i", daemon.stdout.read(4))
            path = daemon.stdout.read(size).decode()
            for _ in range(4):
                with socket.socket(socket.AF_UNIX) as jvm:
                    jvm.connect(path)
            with socket.socket(socket.AF_UNIX) as jvm:
                jvm.connect(path)
                (pid,) = struct.unpack(">i", jvm.recv(4))
            _, errors = daemon.communicate(timeout=30)
    assert pid > 0
    assert errors.decode() == ""
