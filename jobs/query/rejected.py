"""Keeps the records that a task rejects in the journal.

On its way into Python the struct of a rejected record is one text: of a struct each of its columns
takes its room and its time for every row, though nearly every row has none.

A large record stays behind: its text says only where it is, and the driver reads the batch again.
So every row that crosses has a bounded size.
"""

import base64
import json

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.rejected_file import RECORDS_LEFT
from unskew.grouping.spark.whole_files import Synced
from unskew.jobs.operators.base import KEY, Operator
from unskew.jobs.query.prepare import REJECTED

_CARRIED_BYTES = 3 << 10
"""Of a record with more bytes of key, value and topic none of these go into the task's rows."""
TEXT_BYTES_MAX = 5 << 10
"""No text is longer: a third more for base 64, and a reason, coordinates and names."""
_TOPIC_BYTES = 512
_BYTES = ("key", "value", "topic")
_LEFT = "left"

_SCHEMA = pa.schema(
    {
        "reason": pa.string(),
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        _LEFT: pa.bool_(),
    }
)
"""The struct, as Arrow has it of Spark, and whether its bytes stayed behind."""


def pack_rejected(rows: DataFrame, operator: Operator) -> DataFrame:
    """`rows` with the rejected record, where there is one, as a text.

    Such a row brings no key along, which may be too long; but that names its result, if there are
    several.
    """
    texts = [name for name, kind in operator.key_types.items() if kind == "string"]
    keys = [name for name in texts if not (operator.parts and name == KEY)]
    record = sf.col(REJECTED)
    accepted = {name: sf.when(record.isNull(), sf.col(name)) for name in keys}
    return rows.withColumns({**accepted, REJECTED: make_packed(rows)})


def make_packed(rows: DataFrame) -> Column:
    """The text: JSON with bytes in base 64 and times in microseconds."""
    record, kind = sf.col(REJECTED), rows.schema[REJECTED].dataType
    assert isinstance(kind, StructType)
    sizes = [sf.coalesce(sf.octet_length(record[name]), sf.lit(0)) for name in _BYTES]
    is_left = sum(sizes, sf.lit(0)) > _CARRIED_BYTES
    fields = {name: record[name] for name in kind.fieldNames()}
    fields |= {name: sf.when(~is_left, record[name]) for name in ("key", "value")}
    fields["topic"] = sf.when(~is_left | (sizes[-1] <= _TOPIC_BYTES), record["topic"])
    fields["timestamp"] = sf.unix_micros(record["timestamp"])
    fields[_LEFT] = sf.when(is_left, sf.lit(True))
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
    if _LEFT in table.column_names:
        if pc.any(table[_LEFT]).as_py():
            # First: without it what is kept would be taken for all.
            journal.write(batch, RECORDS_LEFT, b"", Synced.NAME)
        table = table.drop_columns(_LEFT)
    journal.write_rejected(batch, partition, table)
    counted = pc.value_counts(table["reason"])
    return {entry["values"]: entry["counts"] for entry in counted.to_pylist()}
