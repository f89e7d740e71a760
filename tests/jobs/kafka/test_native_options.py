"""What a job says to Kafka's Java client, said to librdkafka."""

import pytest

from unskew.config.errors import UsageError
from unskew.jobs.kafka.native_options import translate_options

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def translated(**options: str) -> dict[str, str]:
    given = {f"kafka.{name}": value for name, value in options.items()}
    native = translate_options({"kafka.bootstrap.servers": "b:9092", **given}, "dead-letters: job")
    assert native.pop("bootstrap.servers") == "b:9092"
    return native


def test_a_log_in_over_tls_is_said_in_other_words() -> None:
    assert translated(
        **{
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{LOGIN} username="me" password="a \\"b\\\\c";',
            "client.id": "not of the log-in",
        }
    ) == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a "b\\c',
    }
    assert translated() == {}


@pytest.mark.parametrize(
    ("kind", "native"),
    [
        ("PEM", {"ssl.certificate.location": "/own", "ssl.key.location": "/own"}),
        ("pkcs12", {"ssl.keystore.location": "/own", "ssl.keystore.password": "p"}),
    ],
)
def test_a_certificate_of_the_client_is_taken_from_its_store(
    kind: str, native: dict[str, str]
) -> None:
    store = {"type": kind, "location": "/own", "password": "p"}
    assert translated(**{f"ssl.keystore.{name}": value for name, value in store.items()}) == native


def test_all_that_only_the_java_client_can_use_is_named_without_its_value() -> None:
    with pytest.raises(UsageError) as raised:
        translated(
            **{
                "sasl.mechanism": "GSSAPI",
                "sasl.jaas.config": "Krb5LoginModule required useKeyTab=true;",
                "ssl.truststore.location": "/ca.jks",
                "ssl.keystore.location": "/own.jks",
                "sasl.kerberos.service.name": "kafka",
            }
        )
    assert [line.split(": ")[2] for line in raised.value.problems] == [
        "kafka.sasl.mechanism",
        "kafka.sasl.jaas.config",
        "kafka.ssl.truststore.location",
        "kafka.ssl.keystore.location",
        "kafka.sasl.kerberos.service.name",
    ]
    assert "useKeyTab" not in str(raised.value)
