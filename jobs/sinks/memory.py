"""Results in the driver's memory, for tests and notebooks."""

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from unskew.config.models.base import IDENTIFIER
from unskew.config.models.sink import Identity
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.jobs.sinks.base import Batch, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _view(text: str) -> str:
    if not IDENTIFIER.fullmatch(text):
        raise make_rule_error("a table's name", "letters, digits, underscores")
    return text


class MemorySink(Sink):
    """Keeps results in a table of the Spark session.

    Results in the driver's memory, for tests and notebooks.
    """

    table: Annotated[str, AfterValidator(_view)] = Field(examples=["word_counts"])
    """The table's name."""

    def identity(self) -> Identity:
        return Identity("table", (self.table.lower(),))

    def write(self, results: "DataFrame", batch: Batch) -> None:
        import pyarrow as pa
        from pyspark.sql import functions as sf

        rows = results.withColumn("batch_id", sf.lit(batch.id)).toArrow()
        session = batch.session
        if batch.id and session.catalog.tableExists(self.table):
            # As rows: a view of the view before would be planned through all batches, ever longer.
            before = session.table(self.table).where(sf.col("batch_id") != batch.id).toArrow()
            rows = pa.concat_tables([before, rows], promote_options="default")
        session.createDataFrame(rows).createOrReplaceTempView(self.table)
