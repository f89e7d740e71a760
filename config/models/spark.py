"""Spark settings of a job: any of Spark's own, but those that Unskew must set itself."""

from typing import Annotated

from pydantic import AfterValidator, Field

from unskew.config.models.base import OptionText, hide_secrets, make_key_check

_OURS = {
    "spark.app.name": "it is the job's name",
    "spark.sql.shuffle.partitions": "write merge.partitions",
    "spark.sql.streaming.checkpointLocation": "write checkpoint",
    "spark.sql.streaming.stateStore.providerClass": "remove it: state is in RocksDB",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "remove it: it is on",
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "remove it: checkpoints are kept",
    "spark.sql.adaptive.enabled": "remove it: partitions are placed by Unskew",
    "spark.jars.packages": "name further jars in spark.jars: Unskew brings its own",
    "spark.submit.pyFiles": "remove it: install Unskew where the executors run",
}

SparkSettings = Annotated[
    dict[
        Annotated[str, AfterValidator(make_key_check(_OURS, frozenset(), "spark."))],
        OptionText,
    ],
    Field(default_factory=dict),
    AfterValidator(hide_secrets),
]
