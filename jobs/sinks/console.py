"""Results on the terminal."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from unskew.config.models.sink import Identity
from unskew.jobs.sinks.base import Batch, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ConsoleSink(Sink):
    """Prints each micro-batch.

    Results on the terminal.
    """

    computes_every_row: ClassVar[bool] = False

    rows: Annotated[int, Field(ge=1, le=100_000)] = 20
    """At most this many rows a micro-batch."""

    def identity(self) -> Identity:
        return Identity("type", (self.result,))

    def write(self, results: "DataFrame", batch: Batch) -> None:
        print(f"batch {batch.id}" + (f": {self.result}" if self.result else ""))
        results.show(self.rows, truncate=False)
