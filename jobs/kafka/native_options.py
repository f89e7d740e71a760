"""Options for librdkafka, from those that a job has for Kafka's Java client.

Spark reads and writes with the Java client, so a job says in its options how to log in. The
commands that read and produce without Spark use librdkafka, which asks for the same in other
words, and reads no store in Java's own format.
"""

from collections.abc import Mapping

from confluent_kafka import KafkaError

from unskew.config.errors import UsageError
from unskew.config.types.jaas import read_jaas_options
from unskew.jobs.kafka.options import find_security_options

_PREFIX = "kafka."
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_RENAMED = {
    "security.protocol": "security.protocol",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.key.password": "ssl.key.password",
}
_OF_STORES = frozenset(
    f"ssl.{store}.{name}" for store in ("truststore", "keystore") for name in ("type", "password")
)
"""Options that are read with those that say where the stores are."""


def translate_options(options: Mapping[str, str], where: str) -> dict[str, str]:
    """Say where brokers are and how to log in to them, in librdkafka's options.

    A UsageError, with `where` in it, names what only the Java client can use.
    """
    native = {"bootstrap.servers": options["kafka.bootstrap.servers"]}
    problems: list[str] = []
    for name in find_security_options(options):
        try:
            native |= _translate(name.removeprefix(_PREFIX), options[name], options)
        except ValueError as error:
            problems.append(f"{where}: {name}: {error}")
    if problems:
        raise UsageError(*problems)
    return native


def _translate(name: str, value: str, options: Mapping[str, str]) -> dict[str, str]:
    if name in _RENAMED:
        return {_RENAMED[name]: value}
    if name in _OF_STORES:
        return {}
    if name == _HOST_CHECK or (name == "sasl.mechanism" and value in _MECHANISMS):
        return {name: value or "none"}
    if name == "sasl.jaas.config":
        return _describe_login(value)
    if name == "ssl.truststore.location":
        return _describe_truststore(value, options)
    if name == "ssl.keystore.location":
        return _describe_keystore(value, options)
    raise ValueError("only Spark can log in with it")


def _describe_login(jaas_line: str) -> dict[str, str]:
    login = read_jaas_options(jaas_line)
    if not {"username", "password"} <= login.keys():
        raise ValueError("no username and password in it; only Spark can log in with it")
    return {"sasl.username": login["username"], "sasl.password": login["password"]}


def _describe_truststore(location: str, options: Mapping[str, str]) -> dict[str, str]:
    if _read_store_type("truststore", options) != "PEM":
        raise ValueError(
            "only Spark can read a store of this type; write the authorities as a PEM file, with"
            " kafka.ssl.truststore.type: PEM"
        )
    return {"ssl.ca.location": location}


def _describe_keystore(location: str, options: Mapping[str, str]) -> dict[str, str]:
    kind = _read_store_type("keystore", options)
    if kind == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if kind == "PKCS12":
        password = options.get("kafka.ssl.keystore.password", "")
        return {"ssl.keystore.location": location, "ssl.keystore.password": password}
    raise ValueError("only Spark can read a store of this type; PEM and PKCS12 serve both")


def _read_store_type(store: str, options: Mapping[str, str]) -> str:
    return options.get(f"kafka.ssl.{store}.type", "JKS").upper()


def is_of_the_group(error: KafkaError) -> bool:
    """Is it that the user may not use a consumer group? A reader that commits nothing needs none.

    librdkafka looks for the group's coordinator all the same.
    """
    return bool(error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED)
