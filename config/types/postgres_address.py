"""Addresses of PostgreSQL as JDBC writes them, `jdbc:postgresql://host:port/database?name=value`."""

import re
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote

from unskew.config.types.secrets import holds_secret
from unskew.grouping.options.broken_rules import make_rule_error

_PREFIX = "jdbc:postgresql:"
# Each may name another server than the one before the database.
_SERVERS = ("host", "hostaddr", "service")


def check_address(text: str) -> str:
    """The address; an error if it is none, or holds a user or a secret."""
    if not text.startswith(_PREFIX):
        raise make_rule_error("a PostgreSQL address", "e.g. jdbc:postgresql://host:5432/database")
    if _holds_credentials(unquote(text)):
        raise make_rule_error(
            "an address without user and password", "write user and password as fields", hide=True
        )
    return text


def make_libpq_address(address: str) -> str:
    """The address as PostgreSQL's own clients write it."""
    rest = address.removeprefix(_PREFIX)
    return f"postgresql:{rest}" if rest.startswith("//") else f"postgresql:///{rest}"


def is_verified(address: str) -> bool:
    """Is the server on this machine, or must its certificate say that it is the one named?

    >>> [is_verified(f"jdbc:postgresql:{end}") for end in ("db", "//[::1]/db", "//db.example.org/")]
    [True, True, False]
    >>> is_verified("jdbc:postgresql://db.example.org/?sslmode=verify-full")
    True
    """
    path, _, query = make_libpq_address(address).removeprefix("postgresql://").partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    modes = [value for name, value in options if name == "sslmode"]
    if modes and all(mode == "verify-full" for mode in modes):
        return True
    servers = [_without_port(server) for server in path.partition("/")[0].split(",")]
    servers += [each for name, value in options if name in _SERVERS for each in value.split(",")]
    return all(_is_local(unquote(server)) for server in servers)


def _is_local(server: str) -> bool:
    """Is it this machine: by a socket's folder, by name, or by address?"""
    if not server or server.startswith(("/", "@")) or server == "localhost":
        return True
    try:
        return ip_address(server).is_loopback
    except ValueError:
        return False


def _without_port(server: str) -> str:
    return re.sub(r"^\[(.*)\](:\d*)?$|:\d*$", r"\1", server)


def _holds_credentials(url: str) -> bool:
    """Does an address name a user or a secret, before the host or as a parameter?"""
    names = [name.lower() for name in re.findall(r"[?&;]([^=&;]+)=", url)]
    return bool(re.search(r"//[^/@\s]*@", url)) or any(
        name == "user" or holds_secret(name) for name in names
    )
