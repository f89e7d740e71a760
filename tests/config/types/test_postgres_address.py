"""Which servers of PostgreSQL need no proof of who they are."""

import pytest

from unskew.config.types.postgres_address import is_verified


@pytest.mark.parametrize(
    "end",
    [
        "unskew",
        "///unskew",
        "//localhost/unskew",
        "//localhost:5432,127.0.0.2:5433/unskew",
        "//[::1]:5432/unskew",
        "///unskew?host=/run/postgresql",
        "//%2Frun%2Fpostgresql/unskew",
        "//db.example.org/unskew?sslmode=verify-full",
    ],
)
def test_this_machine_and_a_proven_server_are_verified(end: str) -> None:
    assert is_verified(f"jdbc:postgresql:{end}")


@pytest.mark.parametrize(
    "end",
    [
        "//db/unskew",
        "//10.0.0.1:5432/unskew",
        "//localhost,db.example.org/unskew",
        "///unskew?host=db.example.org",
        "///unskew?hostaddr=10.0.0.1",
        "//localhost/unskew?ho%73t=db.example.org",
        "///unskew?service=far",
        "//db.example.org/unskew?sslmode=verify-ca",
        "//db.example.org/unskew?sslmode=verify-full&sslmode=disable",
        "//db.example.org/unskew?x=sslmode=verify-full",
        "//localhost.example.org/unskew",
        "//[2001:db8::1]:5432/unskew",
    ],
)
def test_any_other_server_is_not(end: str) -> None:
    assert not is_verified(f"jdbc:postgresql:{end}")
