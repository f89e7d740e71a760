"""Decoded records become a row for each result that wants them, in a job with several."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from unskew.config.models.job import Job
from unskew.jobs.operators.aggregate import Aggregate
from unskew.jobs.operators.base import KEY, Operator
from unskew.jobs.operators.results import Results
from unskew.jobs.query.decode import REJECT_REASON
from unskew.jobs.query.expressions import FILTERED, drop_filtered, evaluate
from unskew.jobs.query.prepare import (
    KEY_TOO_LONG,
    NULL_KEY,
    is_whole_key_too_long,
    list_record_columns,
    reject_times,
    select_prepared,
)

_WANTED = "_wanted"
_REASON = "_reason"


def prepare_results(
    decoded: DataFrame, untyped: Operator, job: Job, now: Column | None = None
) -> tuple[DataFrame, Operator]:
    """A row for each record and result, or one with the reason why a record is rejected.

    What one result cannot use is rejected for that result, whose name is then the row's key, too,
    and counts in the others.
    """
    assert isinstance(untyped, Results)
    rows, operator = _evaluate(decoded, untyped, job, now)
    # Not `explode`, which looks for empty arrays beforehand, with all expressions in that filter.
    rows = rows.withColumn(_WANTED, sf.explode_outer(_list_wanted(operator, job)))
    rows = rows.where(sf.col(_WANTED).isNotNull())
    rows = rows.withColumns({KEY: sf.col(_WANTED)[KEY], REJECT_REASON: sf.col(_WANTED)[_REASON]})
    # Before the hash, which is of a result's own key.
    rows = rows.withColumns(
        {
            column: sf.when(sf.col(KEY) == name, sf.col(column))
            for name, part in operator.parts.items()
            for column in (*part.keys, *part.inputs)
        }
    )
    return select_prepared(rows, operator, job), operator


def _evaluate(
    decoded: DataFrame, untyped: Results, job: Job, now: Column | None
) -> tuple[DataFrame, Results]:
    """The expressions of all results as columns, and for each what it cannot use and why."""
    evaluated = evaluate(decoded, untyped, job)
    operator = evaluated.operator.with_types(evaluated.types)
    assert isinstance(operator, Results)
    parts = operator.parts
    rows = evaluated.rows.select(
        *[
            sf.expr(text).alias(column)
            for part in parts.values()
            for column, text in {**part.keys, **part.inputs}.items()
        ],
        *[
            sf.coalesce(sf.col(where), sf.lit(False)).alias(f"{_WANTED}_{name}")
            for name, where in operator.wheres.items()
        ],
        *[_find_reason(name, part).alias(f"{_REASON}_{name}") for name, part in parts.items()],
        *list_record_columns(evaluated.event_time),
        REJECT_REASON,
        *[name for name in (FILTERED,) if name in evaluated.rows.columns],
    )
    reason = sf.coalesce(sf.col(REJECT_REASON), *reject_times(job, now))
    rows = rows.withColumn(REJECT_REASON, reason)
    # After all reasons, so that no record counts as rejected and as filtered.
    accepted = sf.col(REJECT_REASON).isNull()
    unwanted = {name: accepted & ~sf.col(f"{_WANTED}_{name}") for name in operator.wheres}
    return drop_filtered(rows, unwanted), operator


def _find_reason(name: str, part: Aggregate) -> Column:
    """Why a result cannot use a record; null if it can."""
    reasons = [
        *[sf.when(sf.expr(rule), f"{name}_{word}") for word, rule in part.reject_rules.items()],
        *[sf.when(sf.expr(text).isNull(), f"{name}_{NULL_KEY}") for text in part.keys.values()],
    ]
    return sf.coalesce(*reasons)


def _list_wanted(operator: Results, job: Job) -> Column:
    """The results that want the record, each with the reason if it cannot be used there."""
    entries = []
    for name, part in operator.parts.items():
        long = sf.when(is_whole_key_too_long(part, job), f"{name}_{KEY_TOO_LONG}")
        reason = sf.coalesce(sf.col(f"{_REASON}_{name}"), long)
        entry = sf.struct(sf.lit(name).alias(KEY), reason.alias(_REASON))
        wanted = sf.col(f"{_WANTED}_{name}") if name in operator.wheres else sf.lit(True)
        entries.append(sf.when(wanted, entry))
    whole = sf.struct(sf.lit(None).cast("string").alias(KEY), sf.col(REJECT_REASON).alias(_REASON))
    wanted_by = sf.filter(sf.array(*entries), lambda entry: entry.isNotNull())
    return sf.when(sf.col(REJECT_REASON).isNotNull(), sf.array(whole)).otherwise(wanted_by)
