"""Options for Kafka's Java client, as Spark's connector takes them."""

from collections.abc import Mapping

from unskew.config.types.secrets import Secret, reveal


def make_connection_options(servers: str, options: Mapping[str, str | Secret]) -> dict[str, str]:
    """Make the options to reach the brokers, for the connector's reader and writer."""
    return {"kafka.bootstrap.servers": servers, **reveal(options)}


def find_security_options(options: Mapping[str, str]) -> list[str]:
    """The options, of those for Kafka's Java client, that ask for TLS or a log-in."""
    return [
        name
        for name, value in options.items()
        if name.startswith(("kafka.sasl.", "kafka.ssl."))
        or (name == "kafka.security.protocol" and value.upper() != "PLAINTEXT")
    ]
