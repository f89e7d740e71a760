"""The contracts of a sink and of a dead-letter target: models whose fields are the options.

A class of a user's own is found under the entry point group `unskew.sinks` (or
`unskew.dead_letters`); the entry's name is its `type` in YAML.

`lint`, `schema` and `explain` load the modules of all targets, so none of these imports Spark,
Arrow or a client before it writes: a test looks at `sys.modules`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from unskew.config.models.sink import TargetOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from unskew.config.models.job import Job
    from unskew.jobs.sinks.table_log import TableFile


@dataclass(frozen=True)
class UntakenTotal:
    """A total that a sink cannot take; it becomes a dead letter."""

    sink: str
    """The sink's type and what it writes to."""
    key: str
    """Window and key, as JSON."""
    why: str


@dataclass(frozen=True)
class Batch:
    """The micro-batch that is written."""

    id: int
    """Counted from 0 in a checkpoint; a replay has the same."""
    job: "Job"
    session: "SparkSession"
    """The job's session; that of the rows is a copy, which ends with the query."""
    untaken: list[UntakenTotal] = field(default_factory=list)
    """The totals of the batch that could not be written; sinks add to it."""
    check_owner: Callable[[], None] = lambda: None
    """Raises if another start of the job has taken over, as it does from a driver that was frozen.
    A sink that can take a write back calls it last; it may be sent to tasks."""


@dataclass(frozen=True, repr=False)
class WrittenTopic:
    """A Kafka topic that a target writes to."""

    field: str
    """The target's field that names it."""
    name: str
    client_options: Mapping[str, str]
    """How to reach it, as Spark's connector takes it; secrets are in clear."""
    settings: Mapping[str, str]
    """The settings to create the topic with, if it does not exist."""


class Target(TargetOptions):
    """A sink, or a dead-letter target."""

    @property
    def jar_sets(self) -> Sequence[str]:
        """Further sets of jars of `deploy/ivy.xml` that Spark needs for it."""
        return ()

    def spark_settings(self) -> Mapping[str, str]:
        """Settings of Spark that it needs; those of the job go before them."""
        return {}

    def problems(self, job: "Job") -> Iterable[str]:
        """Problems found before Spark starts, a line each."""
        return ()

    def topics(self, job: "Job") -> Sequence[WrittenTopic]:
        """The Kafka topics that it writes to."""
        return ()


class Sink(Target):
    """Takes the results of each batch.

        from unskew import Sink

        class WebhookSink(Sink):
            url: str

            def write(self, results, batch):
                for row in results.toLocalIterator():
                    post(self.url, batch.id, row.asDict())

    The fields are the options in YAML. A batch that is replayed after a crash is written again,
    with the same `batch.id`.
    """

    computes_every_row: ClassVar[bool] = True
    """Does `write` compute all rows of a batch? Where it does not, they are computed before it."""

    @abstractmethod
    def write(self, results: "DataFrame", batch: Batch) -> None:
        """Write a batch's results, such that writing them again changes nothing.

        What cannot be written whatever is tried goes to `batch.untaken`, and the rest is written.
        """

    def stream(self, results: "DataFrame", job: "Job") -> "DataStreamWriter | None":
        """Spark's own writer for a stream, if there is one; it is used where a job has one sink."""
        return None

    def files_of_batch(self, batch: int, query: str) -> "Sequence[TableFile] | None":
        """The files that a query's batch added to a table; None if that is not known."""
        return None


class DeadLetters(Target):
    """Takes rejected records, each with its reject reason and where it was read."""

    max_share: Annotated[float, Field(gt=0, lt=1)] | None = Field(default=None, examples=[0.2])
    """Stop the job when more than this share of its records is rejected, of a batch or of several
    that together have 1,000 records; without it, it goes on whatever is rejected."""

    @abstractmethod
    def write(self, records: "DataFrame", batch: Batch, *, more: bool = False) -> None:
        """Write a batch's rejected records.

        The first call of a batch replaces what an earlier attempt left; `more` follow it.
        """
