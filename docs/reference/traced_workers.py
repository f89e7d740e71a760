"""Spark's daemon of Python workers, each of which traces the calls of its tasks."""

from typing import Any

from pyspark import daemon

from docs.reference.record_way import tracer

_work: Any = daemon.worker


def _traced(sock: Any, authenticated: bool) -> int:
    tracer().start()
    return int(_work(sock, authenticated))


if __name__ == "__main__":
    daemon.worker = _traced
    daemon.manager()
