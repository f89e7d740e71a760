"""What all Kafka sections share: the client's options, and those that Unskew sets itself."""

from typing import Annotated

from pydantic import AfterValidator, Field

from unskew.config.models.base import OptionText, hide_secrets, make_key_check

_OURS = {
    "kafka.bootstrap.servers": "write bootstrap_servers",
    "subscribe": "write subscribe as a field of the source",
    "subscribePattern": "write pattern",
    "assign": "write assign as a field of the source",
    "startingOffsets": "write start",
    "maxOffsetsPerTrigger": "write records_per_batch",
    "maxRecordsPerPartition": "write split and records_per_task",
    "minPartitions": "write split and records_per_task",
    "failOnDataLoss": "write fail_on_data_loss",
    "topic": "write topic as a field of the sink",
    "kafka.auto.offset.reset": "write start",
    "kafka.enable.auto.commit": "remove it: Spark keeps the offsets in the checkpoint",
    "kafka.key.deserializer": "remove it: records are read as bytes and decoded by decode",
    "kafka.value.deserializer": "remove it: records are read as bytes and decoded by decode",
    "kafka.key.serializer": "remove it: the sink writes text and JSON",
    "kafka.value.serializer": "remove it: the sink writes text and JSON",
    "kafka.interceptor.classes": "remove it: Spark does not allow it",
}
_SPARK = frozenset(
    {
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "groupIdPrefix",
        "includeHeaders",
    }
)

KafkaOptions = Annotated[
    dict[
        Annotated[str, AfterValidator(make_key_check(_OURS, _SPARK, "kafka."))],
        OptionText,
    ],
    Field(default_factory=dict),
    AfterValidator(hide_secrets),
]
