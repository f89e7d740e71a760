"""A job run over sample records in this process: its results, rejected records and mergeability.

The job is as its file says, but for where it reads, writes and keeps its progress.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.config.loader import load, load_job
from unskew.config.models.grouping import LocalGrouping
from unskew.config.models.job import Job
from unskew.config.problems.messages import find
from unskew.config.yaml.results_list import SECTION, read_result_names
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.session import SHORT_LIVED, open_job_session
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower
from unskew.jobs.operators.base import EVENT_TIME, KEY_HASH, PANE, RESULT, Operator
from unskew.jobs.operators.mergeability import Case, CounterExample, find_violations, shrink
from unskew.jobs.operators.registry import list_key_columns, make_operator
from unskew.jobs.operators.user_code.failing_rows import OperatorError, make_partials
from unskew.jobs.query.check_expressions import name_wrong_expressions
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.prepare import REJECTED, keep_accepted
from unskew.jobs.query.prepare_rows import select_table_columns
from unskew.jobs.query.source import COLUMNS, read_static

_TABLE = "unskew_results"
_ROWS = "rows"
_PAIRS_MAX = 60
_SEED = 7
_LINES_MAX = 10
_LINE = "line"
_REASON = "reason"
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For some rows; to make and compile Java code for each step takes longer than the step."""
_SAMPLED_AT = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""The `timestamp` of sample records: with a time of now, no two runs had the same windows."""


@dataclass(frozen=True)
class Tried:
    """What a job made of its sample records."""

    results: list[dict[str, Any]]
    """A result each, in the order of their keys, or rows in the order of their texts."""
    rejected: Mapping[str, int]
    """Rejected records by reason."""
    violations: Sequence[str] | None
    """How merged partials differ from the direct result, each with the samples that show it; None
    where there are no partials."""


def try_out(job_file: str, samples: Path, folder: Path) -> Tried:
    """Run the job over the lines of `samples`; what it writes goes to `folder`."""
    job = load_job(job_file, _make_overrides(job_file, samples, folder))
    values = samples.read_bytes().splitlines()
    with open_job_session(job) as spark, name_wrong_expressions(spark, job):
        if not make_operator(job.operator).merges:
            prepared, _ = _prepare_static(spark, job, values)
            return Tried(_read_rows(prepared), _count_rejected(prepared), None)
        rejected = _RejectedCounts()
        Service(job, spark, (rejected,)).run()
        results = _read_results(spark, job)
        violations = _check_mergeability(spark, job, values)
        return Tried(results, dict(sorted(rejected.counts.items())), violations)


class _RejectedCounts(Follower):
    """Counts the records that a running job rejects, by reason, its operator's failures too."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def on_batch_done(self, done: BatchDone) -> None:
        """Add what the reports of a batch count."""
        self.counts.update(done.stats.rejected if done.stats else {})

    def on_records_rejected(self, counts: Mapping[str, int]) -> None:
        """Add what no report counts."""
        self.counts.update(counts)


def _make_overrides(job_file: str, samples: Path, folder: Path) -> dict[str, object]:
    copy = folder / "in" / "samples.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(samples.read_bytes())
    os.utime(copy, (_SAMPLED_AT, _SAMPLED_AT))
    overrides = {
        "source": {"type": "files", "path": str(folder / "in")},
        "dead_letters": {"type": "files", "path": str(folder / "dead_letters")},
        "checkpoint": str(folder / "checkpoint"),
        "trigger": {"type": "available_now"},
        "partitions": 2,
        "spark.spark.master": "local[2]",
        **{f"spark.{name}": text for name, text in (SHORT_LIVED | INTERPRETED).items()},
    }
    # The columns of a job of rows depend on its sink, which is not written to.
    if _is_of_rows(job_file):
        return overrides
    merge = {"partitions": 1, "output": "update"}
    return {**overrides, **put_sinks_in_memory(job_file), "merge": merge}


def _is_of_rows(job_file: str) -> bool:
    root = load(job_file).root
    kind, _ = find(root, ("operator", "type")) if root else (None, None)
    return kind is not None and kind.value == _ROWS


def _read_rows(prepared: DataFrame) -> list[dict[str, Any]]:
    """The rows that would be written, in the order of their texts."""
    rows = select_table_columns(keep_accepted(prepared))
    return [json.loads(row) for row in sorted(_read_json(rows))]


def _read_json(table: DataFrame) -> list[str]:
    whole = sf.to_json(sf.struct("*"), {"ignoreNullFields": "false"})
    return [row[0] for row in table.drop("batch_id").select(whole).collect()]


def put_sinks_in_memory(job_file: str) -> dict[str, object]:
    """Overrides by which each result goes to a table of its own in memory, and nowhere else."""
    # Not from the job: what its file has wrong may be what the overrides replace.
    root = load(job_file).root
    names = [] if root is None else read_result_names(root)
    if root is None or not names:
        return {"sinks": [{"type": "memory", "table": _name_table(None)}]}
    sinks = [{"type": "memory", "table": _name_table(name), "result": name} for name in names]
    if SECTION in root.key_positions:
        return {f"{SECTION}[{index}].sinks": [sink] for index, sink in enumerate(sinks)}
    return {"sinks": sinks}


def _name_table(result: str | None) -> str:
    return f"{_TABLE}_{result}" if result else _TABLE


def _read_results(spark: SparkSession, job: Job) -> list[dict[str, Any]]:
    """The last result of each window and key; of several results each row names its own."""
    names = job.operator.result_names()
    if not names:
        return _read_table(spark, job, None)
    return [{RESULT: name} | row for name in names for row in _read_table(spark, job, name)]


def _read_table(spark: SparkSession, job: Job, name: str | None) -> list[dict[str, Any]]:
    key = list_key_columns(job, name)
    last = {}
    for text in _read_json(spark.table(_name_table(name)).orderBy("batch_id")):
        result: dict[str, Any] = json.loads(text)
        last[json.dumps([result[column] for column in key])] = result
    return [last[group] for group in sorted(last)]


def _prepare_static(
    spark: SparkSession, job: Job, values: Sequence[bytes]
) -> tuple[DataFrame, Operator]:
    return prepare_records(decode(read_static(spark, values), job.decode, COLUMNS), job)


def _count_rejected(prepared: DataFrame) -> Mapping[str, int]:
    reasons = prepared.select(sf.col(REJECTED)["reason"].alias(_REASON)).toArrow()[_REASON]
    return dict(sorted(Counter(reasons.drop_null().to_pylist()).items()))


def _check_mergeability(
    spark: SparkSession, job: Job, values: Sequence[bytes]
) -> Sequence[str] | None:
    """Merge pairs of rows of one key, one in each piece, and all rows in random pieces."""
    # So that each row has the record that it was made of.
    traced = {"on_error": "dead_letter", "grouping": LocalGrouping(type="local")}
    prepared, operator = _prepare_static(spark, job.model_copy(update=traced), values)
    if not operator.has_partials:
        return None
    rows = _keep_usable(prepared.toArrow(), operator)
    if not rows.num_rows:
        return []
    lines = rows[_LINE].to_pylist()
    try:
        examples, types = _find_counter_examples(spark, operator, rows.drop_columns([_LINE]))
    except OperatorError as error:
        return [f"on a part of the samples: {error}"]
    texts = [value.decode(errors="replace") for value in values]
    shown = [_describe(each, lines, texts) for each in examples]
    return [types, *shown] if types else shown


def _keep_usable(rows: pa.Table, operator: Operator) -> pa.Table:
    """The rows that become partials, in the order of their keys, each with its sample's number."""
    accepted = rows.filter(pc.is_null(pc.struct_field(rows[REJECTED], "reason")))
    lines = pc.struct_field(accepted[REJECTED], "offset")
    order = [(name, "ascending") for name in (KEY_HASH, EVENT_TIME, _LINE)]
    ordered = accepted.append_column(_LINE, lines).drop_columns([REJECTED]).sort_by(order)
    # In a single piece: Spark reads an Arrow table up to its first empty batch.
    parts = [part.rows for part in make_partials(operator, ordered) if part.error is None]
    return pa.concat_tables([ordered.slice(0, 0), *parts]).combine_chunks()


def _find_counter_examples(
    spark: SparkSession, operator: Operator, rows: pa.Table
) -> tuple[list[CounterExample], str | None]:
    """The pairs that differ; if there are none, as few rows as can be found."""
    generator = np.random.default_rng(_SEED)
    pairs = list(islice(_find_pairs(rows), _PAIRS_MAX))
    halves = [np.array([0, 1])]
    cases: list[Case] = [(rows.take(pa.array(pair)), halves) for pair in pairs]
    whole = rows, [generator.integers(0, pieces, rows.num_rows) for pieces in (2, 5)]
    violations, other_types = find_violations(spark, operator, [*cases, whole])
    of_pairs = [
        CounterExample(pairs[each.case], (0, 1), each.merged, each.direct)
        for each in violations
        if each.case < len(pairs)
    ]
    if of_pairs or not violations:
        return of_pairs, other_types
    return [shrink(spark, operator, whole, violations[0])], other_types


def _describe(example: CounterExample, lines: Sequence[int], texts: Sequence[str]) -> str:
    """Describe a difference: the results merged and at once, and the samples of each piece."""
    numbers = [lines[row] for row in example.rows]
    pieces = [
        ", ".join(
            str(number + 1)
            for number, own in zip(numbers, example.pieces, strict=True)
            if own == piece
        )
        for piece in dict.fromkeys(example.pieces)
    ]
    head = f"lines {' | '.join(pieces)}: merged {example.merged}, at once {example.direct}"
    shown = [f"    {number + 1}: {texts[number]}" for number in sorted(set(numbers))[:_LINES_MAX]]
    return "\n".join([head, *shown])


def _find_pairs(rows: pa.Table) -> Iterator[tuple[int, int]]:
    """Find two rows of one key and pane, by their numbers."""
    numbers = pc.rank(rows[KEY_HASH], tiebreaker="dense").to_numpy()
    panes = rows[PANE].to_numpy()
    for number in np.unique(numbers):
        same = np.flatnonzero(numbers == number)
        for first, second in combinations(same.tolist()[:8], 2):
            if panes[first] == panes[second]:
                yield first, second
