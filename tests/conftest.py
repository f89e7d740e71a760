"""Fixtures shared by all tests: real parts, started once a worker, stopped by their own ids."""

import math
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.machine_code import reuse_machine_code
from unskew.jobs.engine.session import session
from unskew.jobs.kafka.broker import Broker

ROOT = Path(__file__).resolve().parent.parent
_DEADLINE = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--golden` writes golden files; `--minutes` and `--turn` run a part of the tests."""
    parser.addoption("--golden", action="store_true", help="write the golden files again")
    parser.addoption("--minutes", type=float, help="begin no test later than this")
    parser.addoption("--turn", default="", help="a word, by which the order of the files is drawn")


def pytest_configure(config: pytest.Config) -> None:
    """Give every Spark of the tests, also of child processes, the settings of short-lived ones.

    And take the kernels that were compiled on this machine already.
    """
    os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "tests" / "support" / "spark_conf"))
    if (minutes := config.getoption("minutes")) is not None:
        config.stash[_DEADLINE] = time.monotonic() + 60 * minutes
    if not hasattr(config, "workerinput"):  # before pytest-xdist starts its workers
        reuse_machine_code(ROOT)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what `--minutes` leaves no time for, before its fixtures are set up."""
    if item.get_closest_marker("every_run"):
        return
    if time.monotonic() > item.config.stash.get(_DEADLINE, math.inf):
        pytest.skip("not begun: the time of --minutes is over")


# A wrapper, because pytest-xdist reads the groups in a hook of its own, which may run before ours.
@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Put tests that share what is costly to start on one worker of pytest-xdist.

    That is the session of this process, the kernels of a grouping, and what a fixture starts for a
    whole file. First are those that every run has; then what takes longest: the tests of that
    session, on one worker, then child processes with a session of their own, on whichever worker is
    free.
    """
    if turn := config.getoption("turn"):
        items.sort(key=lambda item: zlib.crc32(f"{turn} {item.path.relative_to(ROOT)}".encode()))
    items.sort(key=_rank)
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (group := _group(item)):
            item.add_marker(pytest.mark.xdist_group(group))
    return (yield)


def _rank(item: pytest.Item) -> int:
    """Before which others a test is run."""
    if item.get_closest_marker("every_run"):
        return -1
    if "spark" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if item.get_closest_marker("spark") else 2


def _group(item: pytest.Item) -> str:
    """The group of a test; empty for a test that may run on any worker."""
    if "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    if grouping := _grouping(item):
        return grouping
    fixtures = getattr(item, "_fixtureinfo", None)
    definitions = fixtures.name2fixturedefs.values() if fixtures else ()
    shared = any(of_name[-1].scope in {"module", "class"} for of_name in definitions)
    return item.nodeid.partition("::")[0] if shared else ""


def _grouping(item: pytest.Item) -> str:
    """The grouping that a test is of: one worker compiles and loads its kernels."""
    if item.path.parent.name == "algorithms":
        return item.path.stem.removeprefix("test_")
    member = getattr(getattr(item, "callspec", None), "params", {}).get("member")
    return str(member.kind.name) if member else ""


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A real Kafka broker on a free loopback port."""
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the tests' own process, which can have no second one."""
    settings = {
        # A task that fails is tried again, as on a cluster.
        "spark.master": "local[2,4]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
    }
    with session("tests", settings) as running:
        yield running
