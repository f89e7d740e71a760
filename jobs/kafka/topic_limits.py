"""How large a record of a topic may be, as its brokers say."""

from collections.abc import Mapping
from functools import lru_cache

from unskew.config.errors import UnskewError

_ANSWER_SECONDS = 15.0
_LIMIT = "max.message.bytes"


def read_message_bytes_max(options: Mapping[str, str], topic: str) -> int | None:
    """The topic's limit; None if the brokers do not say, or may not tell this user.

    Once they have said it they are not asked again in the life of a process.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415 - lint loads all sinks

    try:
        return _ask(tuple(sorted(options.items())), topic)
    except (KafkaException, UnskewError, TimeoutError):
        return None


@lru_cache
def _ask(options: tuple[tuple[str, str], ...], topic: str) -> int:
    from confluent_kafka.admin import (  # type: ignore[attr-defined]  # noqa: PLC0415
        AdminClient,
        ConfigResource,
        ResourceType,
    )

    from unskew.jobs.kafka.native_options import translate_options  # noqa: PLC0415 - likewise

    client = AdminClient({**translate_options(dict(options), f"kafka: {topic}"), "log_level": 0})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (answer,) = client.describe_configs([resource], request_timeout=_ANSWER_SECONDS).values()
    return int(answer.result(_ANSWER_SECONDS)[_LIMIT].value)
