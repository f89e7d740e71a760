"""Groupings in Spark: `route` gives a DataFrame its `partition_key` and repartitions it by that.

    from unskew import route

    routed = route(events, key="user_id", grouping="level", partitions=16, journal=path)
    routed.mapInArrow(my_operator, schema)

Only the key's 64-bit hash crosses into Python (and the time, where a grouping asks for it). In a
stream, a task starts from the state that its source left in the journal, and leaves the next; so a
retried or speculated task routes as the first attempt did. Without a journal every batch begins
again: right for `key` and `shuffle`, a loss for groupings that learn over batches. `level` is as
even, but its sources do not agree: up to 1.9 pairs a key where keys are alike, 1.05 with a journal.

The records of one key in the same batch may meet in several partitions (that is the point), so what
comes after must be mergeable: partial results here, exact totals in a `groupBy(key)` behind it.
Where all rows of a key and batch must be together, `grouping="whole"` keeps them so: in a stream
with a journal balanced from the second batch on, otherwise as under a hash.
`docs/examples/route_before_your_own_operator.py` shows both, in a batch and in a stream.
"""

from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.router import Router, make_column, route_hashes
from unskew.grouping.spark.workers_python import choose_workers_python


def route(
    frame: DataFrame,
    *,
    key: str | Column,
    grouping: str = "level",
    partitions: int = 16,
    journal: str | Path | Journal | None = None,
    timestamp: str | Column | None = None,
    size: str | Column | None = None,
    seed: int = 0,
    options: dict[str, Any] | None = None,
) -> DataFrame:
    """`frame` with the column `partition_key`, and each row in the partition of that number.

    `frame` may be a stream or not. Every row is routed once, moves once, and keeps its columns.

    key: the column, or its name, whose values are to be spread; of any type but a map.
    grouping: a name of `grouping.registry.GROUPINGS`, with its own `options`; a wrong one is a
        `GroupingError` at once.
    partitions: how many; at least as many as there are cores.
    journal: for a stream, a folder of its own (a path or a URI that all executors see), best beside
        the checkpoint: there each source's state goes on from batch to batch. The newest 20 batches
        are kept. To go on with another grouping, seed or options, name another folder.
        A query that is no stream needs none.
    timestamp: the records' time, where a grouping asks for it.
    size: the records' bytes, which `level` asks for with `balance: bytes`.
    seed: the same seed routes the same way.

    Groupings that learn from what partitions report (`posg`, `fish`) get no reports here, since
    those are written by a job's own partial stage; they route by what they see of the keys.

    With a local master, workers that start from now on are forked with what routing needs imported,
    unless the session has a `spark.python.daemon.module` of its own.
    """
    choose_workers_python(frame.sparkSession)
    opened = journal if isinstance(journal, Journal) or journal is None else Journal(str(journal))
    parallel = max(1, frame.sparkSession.sparkContext.defaultParallelism)
    settings = dict(options or {})
    router = Router(grouping, partitions, seed, parallel, settings, opened, purges=True)
    return route_hashes(frame, sf.xxhash64(make_column(key)), router, timestamp, size)
