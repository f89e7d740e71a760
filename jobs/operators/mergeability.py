"""Checks that an operator is mergeable; also one of a user's own.

Cases are rows as the partial stage sees them: `key`, `pane`, `key_hash`, `event_time` and the
operator's inputs. Each case is split into pieces in several ways; each piece becomes partials,
those are merged by Spark in another order, and the results must equal, in values and types, those
of plain Spark over all rows. An operator without a native form is held against one piece of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.grouping.base import Int64s
from unskew.jobs.operators.base import EVENT_TIME, KEY, PANE, RECORDS, Operator
from unskew.jobs.operators.user_code.failing_rows import OperatorError, Part, describe_failure

Results = dict[tuple[str, int], dict[str, Any]]
"""The columns of a result, by key and pane."""

Case = tuple[pa.Table, Sequence[Int64s]]
"""Rows, and the ways to split them: of each row the number of its piece."""

_CASE = "case"
_GROUP = (_CASE, PANE, KEY)
_TRIED_MAX = 64
"""Candidates for a smaller counter-example that are tried at once."""


@dataclass(frozen=True)
class Violation:
    """A result of one way to split a case that is not the direct one."""

    case: int
    way: int
    key: str
    pane: int
    merged: Mapping[str, Any] | None
    direct: Mapping[str, Any] | None

    def __str__(self) -> str:
        where = f"case {self.case}: key {self.key!r}, pane {self.pane}"
        return f"{where}: merged {self.merged}, direct {self.direct}"


@dataclass(frozen=True)
class CounterExample:
    """Rows by their numbers, the piece of each, and what they give merged and at once."""

    rows: tuple[int, ...]
    pieces: tuple[int, ...]
    merged: Mapping[str, Any] | None
    direct: Mapping[str, Any] | None


def find_violations(
    spark: SparkSession, operator: Operator, cases: Sequence[Case]
) -> tuple[list[Violation], str | None]:
    """Each result that is not the direct one; and how the columns' types differ, if they do."""
    splits = [(rows, pieces) for rows, ways in cases for pieces in ways]
    wholes = [index for index, (_, ways) in enumerate(cases) for _ in ways]
    merged, merged_types = merge_results(spark, operator, splits)
    if operator.direct:
        tables = [rows for rows, _ in cases]
        direct, direct_types = compute_direct_results(spark, operator, tables)
    else:
        whole = [(rows, np.zeros(rows.num_rows, np.int64)) for rows, _ in cases]
        direct, direct_types = merge_results(spark, operator, whole)
    violations = []
    for index, results in enumerate(merged):
        case = wholes[index]
        violations += _list_differences(case, index - wholes.index(case), results, direct[case])
    if merged_types == direct_types:
        return violations, None
    return violations, f"types: merged {merged_types}, direct {direct_types}"


def shrink(
    spark: SparkSession, operator: Operator, case: Case, violation: Violation
) -> CounterExample:
    """Find as few rows of a case as still give another result, split as they were.

    Parts of the rows are left out, ever smaller ones, as long as something differs.
    """
    rows, pieces = case[0], case[1][violation.way]

    def find(candidates: Sequence[Int64s]) -> tuple[Int64s, Violation] | None:
        tried = [(rows.take(pa.array(each)), [pieces[each]]) for each in candidates]
        violations, _ = find_violations(spark, operator, tried)
        return (candidates[violations[0].case], violations[0]) if violations else None

    groups = zip(rows[KEY].to_pylist(), rows[PANE].to_pylist(), strict=True)
    own = [row for row, group in enumerate(groups) if group == (violation.key, violation.pane)]
    chosen, shown = find([np.array(own)]) or (np.arange(rows.num_rows), violation)
    left_out = chosen.size // 2
    while left_out:
        starts = range(0, chosen.size, left_out)[:_TRIED_MAX]
        smaller = find([np.delete(chosen, slice(at, at + left_out)) for at in starts])
        chosen, shown = smaller or (chosen, shown)
        left_out = min(left_out if smaller else left_out // 2, chosen.size // 2)
    return CounterExample(
        tuple(chosen.tolist()), tuple(pieces[chosen].tolist()), shown.merged, shown.direct
    )


def merge_results(
    spark: SparkSession, operator: Operator, splits: Sequence[tuple[pa.Table, Int64s]]
) -> tuple[list[Results], dict[str, str]]:
    """Compute the totals of each table by way of partials of its pieces; and the columns' types."""
    names = [*operator.keys, PANE, EVENT_TIME, RECORDS, *operator.partial_columns]
    partials = []
    for case, (rows, pieces) in enumerate(splits):
        for piece in np.unique(pieces)[::-1]:
            made = _make_partials(operator, rows.filter(pa.array(pieces == piece))).select(names)
            partials.append(made.append_column(_CASE, pa.array(np.full(made.num_rows, case))))
    frame = spark.createDataFrame(pa.concat_tables(partials[::-1]))
    return _collect(operator, frame, operator.merge, len(splits))


def _make_partials(operator: Operator, piece: pa.Table) -> pa.Table:
    try:
        return operator.partial(piece)
    except Exception as error:
        failed = Part(piece, None, error)
        raise OperatorError(describe_failure(operator, failed)) from error


def compute_direct_results(
    spark: SparkSession, operator: Operator, tables: Sequence[pa.Table]
) -> tuple[list[Results], dict[str, str]]:
    """Compute the totals of each table by plain Spark; and the columns' types."""
    numbered = [
        rows.append_column(_CASE, pa.array(np.full(rows.num_rows, case)))
        for case, rows in enumerate(tables)
    ]
    frame = spark.createDataFrame(pa.concat_tables(numbered))
    return _collect(operator, frame, operator.direct, len(tables))


def _collect(
    operator: Operator, frame: DataFrame, aggregates: Mapping[str, str], cases: int
) -> tuple[list[Results], dict[str, str]]:
    totals = frame.groupBy(*_GROUP).agg(
        *[sf.expr(text).alias(name) for name, text in aggregates.items()]
    )
    final = operator.final if aggregates else {}
    frame = totals.select(*_GROUP, *[sf.expr(text).alias(name) for name, text in final.items()])
    results: list[Results] = [{} for _ in range(cases)]
    for row in frame.toArrow().to_pylist():
        case, pane, key = (row.pop(name) for name in _GROUP)
        results[case][key, pane] = row
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    return results, types


def _list_differences(case: int, way: int, merged: Results, direct: Results) -> list[Violation]:
    return [
        Violation(case, way, *group, merged.get(group), direct.get(group))
        for group in sorted(merged.keys() | direct.keys())
        if merged.get(group) != direct.get(group)
    ]
