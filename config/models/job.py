"""The model of a whole job file."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, create_model, model_validator

from unskew.config.models.base import (
    IDENTIFIER,
    Expression,
    Location,
    Model,
    make_contradiction,
)
from unskew.config.models.decode import Decode
from unskew.config.models.grouping import GroupingChoice
from unskew.config.models.metrics import Metrics
from unskew.config.models.operator import OperatorOptions
from unskew.config.models.sink import TargetOptions
from unskew.config.models.source import Source
from unskew.config.models.spark import SparkSettings
from unskew.config.models.window import IntervalTrigger, Merge, NoWindow, Trigger, Window
from unskew.config.problems.problem import format_path
from unskew.config.rules import contradictions
from unskew.config.specs import make_section_type
from unskew.config.types.units import ByteSize, Duration, DurationOrOff
from unskew.grouping.base import PARTITIONS_MAX, SEED_MAX
from unskew.grouping.options.broken_rules import make_rule_error

SINKS_MAX = 20
SELECTED_MAX = 200
KEY_BYTES_MAX = 16 << 20


def _check_key_bytes(size: ByteSize) -> ByteSize:
    if not 1 <= size.bytes <= KEY_BYTES_MAX:
        raise make_rule_error(f"from 1 B to {ByteSize(KEY_BYTES_MAX)}")
    return size


def _name(text: str) -> str:
    if not IDENTIFIER.fullmatch(text) or text.lower().startswith(("_", "raw_")):
        raise make_rule_error(
            "a column's name", "letters, digits, underscores; not raw_... or _..."
        )
    return text


Name = Annotated[str, AfterValidator(_name)]
KeyBytes = Annotated[ByteSize, AfterValidator(_check_key_bytes)]


def _type_of(section: str, installed: Sequence[type[Model]] = ()) -> Any:
    """Make a section's type: one of the types that ship, or of those that are installed."""
    choice: Any = make_section_type(section, installed)
    if section == "sinks":
        return Annotated[list[choice], Field(min_length=1, max_length=SINKS_MAX)]
    return choice


if TYPE_CHECKING:
    Operator = OperatorOptions
    Sinks = list[TargetOptions]
    DeadLetters = TargetOptions
else:
    Operator = _type_of("operator")
    Sinks = _type_of("sinks")
    DeadLetters = _type_of("dead_letters")


class Job(Model):
    """A job: records from a source, grouped evenly, through an operator, to sinks."""

    name: Annotated[str, Field(pattern="^[a-z][a-z0-9_-]{0,62}$", examples=["word_count"])]
    """The job's name in logs and metrics: up to 63 lower-case letters, digits, `_` and `-`."""
    source: Source
    """Where records come from."""
    decode: Decode
    """How a record's value becomes typed columns."""
    where: Expression | None = Field(default=None, examples=["country is not null"])
    """Only records of which this SQL condition is true are used; the others are counted as
    filtered. It sees the decoded columns."""
    select: Annotated[dict[Name, Expression], Field(max_length=SELECTED_MAX)] | None = Field(
        default=None, examples=[{"amount": "cast(amount as decimal(18, 2))"}]
    )
    """Further columns by name, as SQL expressions over the decoded ones, for the operator and
    `event_time`; one of the same name replaces the decoded column."""
    operator: Operator
    """What to compute from the records of each key."""
    on_error: Literal["stop", "dead_letter"] = "stop"
    """When the operator raises on a row: `stop` ends the job with the line of its file, the row's
    key and time, and its record's coordinates; `dead_letter` sends the record there
    (`operator_failed`) and goes on, for which every row carries its record through the shuffle. Of
    a record with several keys the others count, and the dead letter has the key of that row
    (`failed_key`)."""
    event_time: Expression = "timestamp"
    """When a record happened, as an SQL expression; by default the record's own timestamp. A record
    without a time goes to the dead letters (`no_event_time`), as does one before 0001-01-02 or
    after 9999-12-30, UTC (`event_time_out_of_range`); see also `max_future`."""
    grouping: GroupingChoice
    """How records are spread over partitions; a text is its type: `grouping: level`."""
    partitions: Annotated[int, Field(ge=1, le=PARTITIONS_MAX)] = 16
    """Partitions that records are routed to: at least as many as there are cores."""
    seed: Annotated[int, Field(ge=0, le=SEED_MAX)] = 0
    """Seed of the grouping's hashes: the same seed routes the same way."""
    window: Window = NoWindow()
    """Over which stretch of event time results are made; without it, running totals. A text is the
    duration of tumbling windows: `window: 1 minute`."""
    lateness: Duration | None = None
    """With windows: how much later than the latest record another may come and still count.
    Without it none may: what comes for a window that an earlier batch saw the end of is dropped."""
    max_future: DurationOrOff = Duration.parse("1 h")
    """How far after the batch's own time an event time may be, and after the record's arrival where
    the topic is stamped by the broker (LogAppendTime); records beyond go to the dead letters
    (`event_time_in_the_future`). `off`: a single record may move the watermark beyond all others,
    which are then dropped as late."""
    max_key_bytes: KeyBytes = ByteSize.parse("2 KiB")
    """How long a key may be, as UTF-8. A record with longer ones goes to the dead letters
    (`key_too_long`); those of its keys that are not too long count. An index of PostgreSQL takes
    about 2,700 bytes."""
    max_keys_per_record: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    """How many keys (words, hashtags) a record may have; one with more goes to the dead letters
    (`too_many_keys`)."""
    merge: Merge = Merge()
    """How partial results become totals."""
    sinks: Sinks
    """Where results go."""
    dead_letters: DeadLetters
    """Where records go that cannot be processed."""
    metrics: Metrics = Metrics()
    """The metrics that Prometheus reads, and the live page."""
    trigger: Trigger = IntervalTrigger(type="interval")
    """When micro-batches begin; a text is their interval, as in `trigger: 10 s`, or a type."""
    retry_for: DurationOrOff = Duration.parse("10 minutes")
    """How long a job that ran is started again, with growing waits, after a fault that may pass:
    brokers, PostgreSQL or an object store away. It is not ready meanwhile; then, and after all
    other faults, it ends with exit code 1. `off`: it ends at once."""
    checkpoint: Location
    """The folder (a path or a URI) that keeps the job's progress; one job's own."""
    spark: SparkSettings
    """Settings for Spark by their own names, such as `spark.master`."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        sections = {name: getattr(self, name) for name in Job.model_fields}
        rules = [f"{format_path(wrong.path)}: {wrong.rule}" for wrong in contradictions(sections)]
        if rules:
            raise make_contradiction("; ".join(rules))
        return self


def make_job_model(installed: Mapping[str, Sequence[type[Model]]]) -> type[Job]:
    """A `Job` whose sections may also be of the types that are `installed`, by section."""
    if not installed:
        return Job
    fields: dict[str, Any] = {}
    for section, models in installed.items():
        about = Job.model_fields[section].description
        kind = _type_of(section, models)
        fields[section] = (Annotated[kind, Field(description=about)], ...)
    return create_model("Job", __base__=Job, __doc__=Job.__doc__, **fields)
