"""Takes the sample that a question is about, with a progress bar on a terminal."""

import itertools
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from unskew.config.errors import UsageError
from unskew.config.loader import load
from unskew.config.models.grouping import read_grouping_options
from unskew.config.models.job import Job
from unskew.config.models.source import KafkaSource
from unskew.config.specs import load_operator
from unskew.config.types.secrets import reveal
from unskew.jobs.commands.prediction.key_expression import KeyExpression, parse_key_expression
from unskew.jobs.commands.prediction.key_sample import Sample, sample_texts, sample_trace
from unskew.jobs.commands.prediction.options import Question
from unskew.jobs.kafka.newest_records import Progress as Report
from unskew.jobs.kafka.newest_records import RawSample, sample_source, sample_topics

_LOCAL_MASTER = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_JOB_RECORDS_MAX = 300_000
"""No more of a job's records are taken, as they are kept as rows."""


@dataclass(frozen=True)
class PredictionInput:
    """A sample, and what its job says of the rest."""

    sample: Sample
    partitions: int
    batch_records: int | None
    today: str
    """How the records are spread now: the type of its job's grouping."""
    splits: bool = True
    """May its operator have the records of a key in several partitions?"""
    slots: int | None = None
    """Partitions that its job works on at once, if that is known."""
    level: Mapping[str, Any] = field(default_factory=dict)
    """The options of `level` that the job has, if that is its grouping."""
    file_cost: int = 0
    """What a file of its table costs, in bytes; 0 where those are not balanced."""


def take_sample(question: Question) -> PredictionInput:
    """The sample; an error is one sentence."""
    if question.job is not None:
        return _sample_job(question, question.job)
    assert question.partitions is not None
    if question.trace is not None:
        sample = sample_trace(question.trace, question.trace_spec, question.limits.records)
    else:
        sample = _sample_records(question)
    return PredictionInput(sample.check(), question.partitions, question.batch_records, "none")


def _sample_records(question: Question) -> Sample:
    text = question.key or ("value" if question.topic is None else "key")
    expression = parse_key_expression(text)
    if question.topic is not None:
        where = f"{question.topic} on {question.servers}"
        options = question.client_options
        raw = sample_topics([question.topic], question.servers, question.limits, options, _bar)
    else:
        where = str(question.file)
        raw = _read_lines(Path(where), question.limits.records)
    if not raw.keys:
        return sample_texts(where, [], raw)
    return sample_texts(where, _evaluate(raw, text, expression), raw)


def _evaluate(
    raw: RawSample, text: str, expression: KeyExpression | None
) -> Sequence[bytes | None]:
    if expression is not None:
        return expression.evaluate(raw)
    from unskew.jobs.commands.run import quiet_spark  # noqa: PLC0415 - loads Spark
    from unskew.jobs.engine.samples.sample_rows import evaluate_keys  # noqa: PLC0415

    _say(f"starting Spark to evaluate --key {text}")
    quiet_spark(debug=False)
    return [None if key is None else key.encode() for key in evaluate_keys(raw, text)]


def _read_lines(path: Path, records: int) -> RawSample:
    """The lines of a file as records that have a value alone."""
    try:
        with path.open("rb") as file:
            lines = (line.rstrip(b"\r\n") for line in file)
            values: list[bytes | None] = list(itertools.islice(filter(None, lines), records))
            there = len(values) + sum(1 for _ in file)
    except OSError as error:
        raise UsageError(f"--file: {path}: {error.strerror}") from error
    return RawSample([None] * len(values), values, there=there)


def _sample_job(question: Question, name: str) -> PredictionInput:
    from unskew.jobs.commands.run import quiet_spark  # noqa: PLC0415 - loads Spark
    from unskew.jobs.engine.samples.sample_rows import sample_job  # noqa: PLC0415

    loaded = load(name)
    if loaded.job is None or loaded.problems:
        raise UsageError(*loaded.lines())
    job = loaded.job
    implementation = load_operator(job.operator)
    is_table = not implementation.merges
    if question.table and not is_table:
        raise UsageError(
            f"compare: --table: {job.name}: operator {job.operator.type} writes results, which are"
            " few; name a job with operator rows"
        )
    if is_table and not question.table:
        raise UsageError(
            f"compare: {job.name}: operator {job.operator.type} makes no partial results whose time"
            " could be predicted; add --table for its files and writers"
        )
    limits = replace(question.limits, records=min(question.limits.records, _JOB_RECORDS_MAX))
    raw = sample_source(job.source, limits, _bar)
    if raw is not None and not raw.keys:
        sample_texts(_describe_source(job), [], raw).check()
    _say("starting Spark to prepare the records and to measure the operator")
    quiet_spark(debug=False)
    rows = sample_job(job, raw, limits.records)
    there = raw.there if raw is not None else len(rows.hashes)
    sample = Sample(
        _describe_source(job),
        rows.hashes,
        there,
        rows.rejected,
        lambda number: str(rows.texts[number].as_py()),
        work=rows.work,
        sizes=rows.sizes,
    ).check()
    batch = getattr(job.source, "records_per_batch", None)
    return PredictionInput(
        sample,
        question.partitions or job.partitions,
        question.batch_records or batch,
        job.grouping.type,
        implementation.splits,
        count_slots(reveal(job.spark).get("spark.master", "local[*]")),
        read_grouping_options(job.grouping) if job.grouping.type == "level" else {},
        rows.file_cost,
    )


def count_slots(master: str) -> int | None:
    """The tasks that a local master runs at once; None of a cluster, which is not known here."""
    match = _LOCAL_MASTER.fullmatch(master)
    if match is None:
        return None
    threads = match[1] or "1"
    return os.cpu_count() or 1 if threads == "*" else int(threads)


def _describe_source(job: Job) -> str:
    source = job.source
    if isinstance(source, KafkaSource):
        named = source.subscribe or source.pattern or list(source.assign or ())
        return f"{', '.join([named] if isinstance(named, str) else named)} of job {job.name}"
    return f"{source.path} of job {job.name}"


def _say(line: str) -> None:
    print(f"compare: {line}", file=sys.stderr, flush=True)


@contextmanager
def _bar(topic: str) -> Iterator[Report]:
    """Show a bar of a topic's records on a terminal; elsewhere nothing."""
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} records"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bars:
        task = bars.add_task(f"reading {topic}", total=1)

        def update(done: int, total: int) -> None:
            with suppress(KeyError):
                bars.update(task, completed=done, total=total)

        yield update
