"""A PostgreSQL server for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.support.running.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One for all of them: they run on one worker, that of Spark's session."""
    with postgres_server() as running:
        yield running
