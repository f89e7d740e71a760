"""Options for Kafka's Java client, as Spark's connector takes them."""

from collections.abc import Mapping

from unskew.config.types.secrets import Secret, reveal


def connection_options(servers: str, options: Mapping[str, str | Secret]) -> dict[str, str]:
    """How to reach the brokers, for the connector's reader and writer alike."""
    return {"kafka.bootstrap.servers": servers, **reveal(options)}
