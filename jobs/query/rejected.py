"""Keeps the records that a task rejects in the journal.

On its way into Python the struct of a rejected record is one text: of a struct each of its columns
takes its room and its time for every row, though nearly every row has none.
"""

import base64
import json

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from unskew.grouping.spark.journal import Journal
from unskew.jobs.query.prepare import REJECTED

_SCHEMA = pa.schema(
    {
        "reason": pa.string(),
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
)
"""The struct, as Arrow has it of Spark."""


def pack_rejected(rows: DataFrame) -> DataFrame:
    """`rows` with the rejected record, where there is one, as a text."""
    return rows.withColumn(REJECTED, make_packed(rows))


def make_packed(rows: DataFrame) -> Column:
    """The text: JSON with bytes in base 64 and times in microseconds."""
    record, kind = sf.col(REJECTED), rows.schema[REJECTED].dataType
    assert isinstance(kind, StructType)
    fields = {name: record[name] for name in kind.fieldNames()}
    fields["timestamp"] = sf.unix_micros(record["timestamp"])
    named = sf.struct(*[column.alias(name) for name, column in fields.items()])
    return sf.when(record.isNotNull(), sf.to_json(named))


def unpack_rejected(texts: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rejected records of these texts, none of which is null."""
    records = [json.loads(text) for text in texts.to_pylist()]
    for each in records:
        for name in ("key", "value"):
            if name in each:
                each[name] = base64.b64decode(each[name])
    return pa.Table.from_pylist(records, _SCHEMA)


def keep_rejected(
    journal: Journal, batch: int, partition: int, rejected: list[pa.Table]
) -> dict[str, int]:
    """Write the rejected records into the journal; how many there are by reason."""
    if not rejected:
        return {}
    # In one piece, since each piece of the file is sent on by itself.
    table = pa.concat_tables(rejected).combine_chunks()
    journal.write_rejected(batch, partition, table)
    counted = pc.value_counts(table["reason"])
    return {entry["values"]: entry["counts"] for entry in counted.to_pylist()}
