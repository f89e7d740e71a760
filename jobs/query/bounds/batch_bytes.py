"""Whether Spark must look at the bytes of the batches in which rows cross into Python.

It does so after every row, so that no batch is much larger than 64 MiB: a tenth and more of the
processor time of a routed word count. Where even a full batch of the largest rows is smaller there
is nothing to look for.
"""

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    TimestampNTZType,
    TimestampType,
)

from unskew.config.models.job import Job
from unskew.jobs.operators.base import Operator
from unskew.jobs.query.prepare import REJECTED
from unskew.jobs.query.rejected import TEXT_BYTES_MAX

MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNLIMITED = str(2**31 - 1)
"""The one value with which Spark does not look."""
_FIXED = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)
_FIXED_BYTES = 24
"""The most of a value of these types: a decimal, its bit, and room to round up."""


def choose_batch_bytes(rows: DataFrame, operator: Operator, job: Job) -> dict[str, str]:
    """Choose Spark's setting for a query over `rows`; none where its own is needed, or changed."""
    conf = rows.sparkSession.conf
    if any(conf.get(name, None) is not None for name in (MOST_BYTES, _MOST_ROWS)):
        return {}
    texts = {name for name, kind in operator.key_types.items() if kind == "string"}
    sizes = [
        _bound(field.dataType)
        for field in rows.schema.fields
        if field.name not in {*texts, REJECTED}
    ]
    # A rejected row has no key, and all texts of a key together are limited.
    text = max(job.max_key_bytes.bytes, TEXT_BYTES_MAX)
    offsets = 8 * (len(texts) + 1)
    most, count = str(conf.get(MOST_BYTES)).removesuffix("b"), str(conf.get(_MOST_ROWS))
    is_small = (sum(sizes) + text + offsets) * int(count) < int(most)
    return {MOST_BYTES: _UNLIMITED} if is_small else {}


def _bound(kind: DataType) -> float:
    return _FIXED_BYTES if isinstance(kind, _FIXED) else float("inf")
