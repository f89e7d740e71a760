"""Keeps the records that a task rejects in the journal."""

import pyarrow as pa
import pyarrow.compute as pc

from unskew.grouping.spark.journal import Journal


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
