"""Fixtures shared by all tests: real parts, started once a worker, stopped by their own ids."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.broker import Broker

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--golden`: golden files are written anew instead of compared with."""
    parser.addoption("--golden", action="store_true", help="write the golden files anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a session share one worker: two Sparks on two cores wait for each other."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A real Kafka broker on a free loopback port."""
    with Broker() as running:
        yield running
