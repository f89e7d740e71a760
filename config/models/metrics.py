"""The section `metrics`: the address of the metrics and the live page."""

import re
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from unskew.config.models.base import Location, Model
from unskew.config.types.secrets import Secret
from unskew.config.types.units import Duration
from unskew.grouping.options.broken_rules import make_rule_error

PORT_MAX = 65_535
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}")


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise make_rule_error("a host's name or address", "e.g. 127.0.0.1, or 0.0.0.0 for all")
    return text


def _port(value: object) -> object:
    if value == "auto":
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise make_rule_error("a port from 0 to 65535, or auto", "e.g. 9095")
    if not 0 <= value <= PORT_MAX:
        raise make_rule_error("a port from 0 to 65535, or auto", "0 and auto: any free one")
    return value


def _not_empty(password: Secret) -> Secret:
    if not password.get_secret_value():
        raise make_rule_error("a password that is not empty", hide=True)
    return password


class Tls(Model):
    """The server's certificate and key, as files."""

    certificate_file: Location
    """The certificate with its chain, PEM."""
    key_file: Location
    """The certificate's private key, PEM."""


class BasicAuth(Model):
    """Who may read the metrics."""

    user: Annotated[str, Field(min_length=1, max_length=255, pattern="^[^:]+$")]
    """The user's name."""
    password: Annotated[Secret, AfterValidator(_not_empty)]
    """The user's password, as a reference: ${env:NAME} or ${file:/path}."""


class Metrics(Model):
    """Where the metrics page listens and what it shows."""

    host: Annotated[str, AfterValidator(_host)] = "127.0.0.1"
    """The address to listen on; 0.0.0.0 for all."""
    port: Annotated[
        int | Literal["auto"],
        BeforeValidator(_port),
        WithJsonSchema(
            {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 0, "maximum": PORT_MAX}]}
        ),
    ] = "auto"
    """The port; `auto` or 0 takes any that is free."""
    host_names: list[Annotated[str, AfterValidator(_host)]] = Field(
        default_factory=list, max_length=20, examples=[["metrics.example.org"]]
    )
    """Names by which the page is reached, as through a proxy. A request by another name that has a
    dot in it is refused, since a web page might have led that name here; by an address, by a name
    without a dot and by this machine's own name it is always reached."""
    tls: Tls | None = None
    """Serve over TLS."""
    basic_auth: BasicAuth | None = None
    """Ask for a user and a password."""
    hot_keys: Annotated[int, Field(ge=0, le=100)] = 10
    """At most this many hot keys are shown."""
    hot_key_names: bool = False
    """Show hot keys by name; otherwise by their hash, since a key may be personal data."""
    dead_letter_values: bool = False
    """Show on the live page how the values of some rejected records begin; otherwise a hash of
    each, since they may hold personal data."""
    hold_after_failure: Duration = Duration.parse("0 s")
    """After a failure the page stays this long, so that Prometheus sees it: under a supervisor,
    three times its scrape interval."""

    @property
    def loopback(self) -> bool:
        """Is the page reachable from this machine only?"""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
