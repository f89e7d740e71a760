"""Checks that an operator is mergeable; also one of a user's own.

Cases are rows as the partial stage sees them: `key`, `pane`, `key_hash`, `event_time` and the
operator's inputs. Each case is split into pieces in several ways; each piece becomes partials,
those are merged by Spark in another order, and the results must equal, in values and types, those
of plain Spark over all rows. An operator without a native form is held against one piece of all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.grouping.base import Int64s
from unskew.jobs.operators.base import EVENT_TIME, KEY, PANE, RECORDS, Operator

Results = dict[tuple[str, int], dict[str, Any]]
"""The columns of a result, by key and pane."""

_CASE = "case"
_GROUP = (_CASE, PANE, KEY)


def mergeability_violations(
    spark: SparkSession,
    operator: Operator,
    cases: Sequence[tuple[pa.Table, Sequence[Int64s]]],
) -> list[str]:
    """How merged results differ from direct ones, a line each: none of a mergeable operator.

    A case is a table of rows and the ways to split it: for each row, the number of its piece.
    """
    splits = [(rows, pieces) for rows, ways in cases for pieces in ways]
    wholes = [index for index, (_, ways) in enumerate(cases) for _ in ways]
    merged, merged_types = merged_results(spark, operator, splits)
    if operator.direct:
        tables = [rows for rows, _ in cases]
        direct, direct_types = direct_results(spark, operator, tables)
    else:
        whole = [(rows, np.zeros(rows.num_rows, np.int64)) for rows, _ in cases]
        direct, direct_types = merged_results(spark, operator, whole)
    violations = []
    if merged_types != direct_types:
        violations.append(f"types: merged {merged_types}, direct {direct_types}")
    for index, results in enumerate(merged):
        violations += _differences(f"case {wholes[index]}", results, direct[wholes[index]])
    return violations


def merged_results(
    spark: SparkSession, operator: Operator, splits: Sequence[tuple[pa.Table, Int64s]]
) -> tuple[list[Results], dict[str, str]]:
    """The totals of each table, by way of partials of its pieces; and the columns' types."""
    names = [*operator.keys, PANE, EVENT_TIME, RECORDS, *operator.partial_columns]
    partials = []
    for case, (rows, pieces) in enumerate(splits):
        for piece in np.unique(pieces)[::-1]:
            made = operator.partial(rows.filter(pa.array(pieces == piece))).select(names)
            partials.append(made.append_column(_CASE, pa.array(np.full(made.num_rows, case))))
    frame = spark.createDataFrame(pa.concat_tables(partials[::-1]))
    return _collected(operator, frame, operator.merge, len(splits))


def direct_results(
    spark: SparkSession, operator: Operator, tables: Sequence[pa.Table]
) -> tuple[list[Results], dict[str, str]]:
    """The totals of each table by plain Spark; and the columns' types."""
    numbered = [
        rows.append_column(_CASE, pa.array(np.full(rows.num_rows, case)))
        for case, rows in enumerate(tables)
    ]
    frame = spark.createDataFrame(pa.concat_tables(numbered))
    return _collected(operator, frame, operator.direct, len(tables))


def _collected(
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


def _differences(case: str, merged: Results, direct: Results) -> list[str]:
    return [
        f"{case}: key {group[0]!r}, pane {group[1]}: merged {merged.get(group)},"
        f" direct {direct.get(group)}"
        for group in sorted(merged.keys() | direct.keys())
        if merged.get(group) != direct.get(group)
    ]
