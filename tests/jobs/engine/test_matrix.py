"""Every grouping with every operator over one Kafka topic: the same exact totals everywhere.

The oracle is plain Python over the records. Distinct users are an estimate: it must be near the
oracle's number, and the same to the last bit whatever the grouping, as all else is. The same runs
show what Spark makes of a whole job: each row is routed once, moved once and merged once.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.oracles import OPERATORS, WINDOWS, WindowedKey, expected, keys_of, records
from tests.support.running.in_process import Ran, utc
from tests.support.running.plans import (
    CountingPipeline,
    evaluated_folder,
    list_stages,
    read_evaluated,
)
from unskew.config.models.grouping import GROUPING_MODELS, UNROUTED
from unskew.grouping.simulation.streams.key_files import hash_text
from unskew.jobs.kafka.broker import Broker

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

GROUPINGS = [name for name in GROUPING_MODELS if name != "none"]
LOOKED_AT = {"word_count": "level", "vwap": "w_choices", "hashtags": "posg", "paced": "partial_key"}
"""By operator, a grouping to look at closely."""
QUICK_OPERATORS = ("word_count", "vwap")
"""What `make test` runs, each with its grouping; `word_count` with `local`, too."""
ROUTED = [
    "StateStoreSave",
    "StateStoreRestore",
    "Exchange HashPartitioning 2",
    "MapInArrow",
    "Exchange ShufflePartitionIdPassThrough 3",
    "ArrowEvalPython",
]
PLAIN = ROUTED[:3]
PLAIN_IN_PYTHON = [*ROUTED[:4], "Exchange HashPartitioning 3"]
TOPIC = "matrix"
RECORDS = 1500
RECORDS_PER_BATCH = 750
BROKEN = 15
# One window each: totals by window are another test's matter.
CHANGES: dict[str, dict[str, Any]] = {
    "word_count": {"window": WINDOWS["tumbling"], "lateness": "1 hour"},
    "vwap": {"window": WINDOWS["sliding"], "lateness": "1 hour"},
    "hashtags": {"window": WINDOWS["none"], "lateness": None},
    "paced": {"window": WINDOWS["tumbling"], "lateness": "1 hour"},
}
Totals = dict[WindowedKey, dict[str, Any]]


class Matrix:
    """The topic, and runs of jobs over it."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path) -> None:
        # So many users that sketches estimate.
        self.rows = records(17, RECORDS, users=5000)
        self._spark, self._folder = spark, folder
        self._runs: dict[tuple[str, str], Ran] = {}
        self._source = {
            "type": "kafka",
            "bootstrap_servers": broker.address,
            "subscribe": [TOPIC],
            "records_per_batch": RECORDS_PER_BATCH,
        }
        broker.create_topics([TOPIC], partitions=2)
        producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
        for number, row in enumerate(self.rows):
            # By symbol, so that the topic is as skewed as its keys.
            producer.produce(TOPIC, json.dumps(row).encode(), row["symbol"])
            if number < BROKEN:
                producer.produce(TOPIC, b'{"symbol": broken')
        assert producer.flush(30) == 0

    def run(self, grouping: str, operator: str) -> Ran:
        """A job over all of the topic, in several batches; each is run once."""
        if (grouping, operator) not in self._runs:
            self._runs[grouping, operator] = Ran(
                self._spark,
                self._folder,
                f"{operator}-{grouping}",
                self._source,
                CountingPipeline,
                operator=OPERATORS[operator],
                # A sample could show that Spark alone is as fast, and then there are no reports.
                grouping={"type": grouping} | ({"sample_records": 0} if grouping == "auto" else {}),
                **CHANGES[operator],
            )
        return self._runs[grouping, operator]

    def plain(self, operator: str) -> Totals:
        """The totals without a grouping."""
        return self.run("none", operator).last


@pytest.fixture(scope="module")
def matrix(
    spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Matrix]:
    # The last batch of a query has rows: a plan over none is cut short.
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    with utc():
        yield Matrix(spark, broker, tmp_path_factory.mktemp("matrix"))
    spark.conf.unset("spark.sql.streaming.noDataMicroBatches.enabled")


def is_exact(totals: Totals, rows: list[dict[str, Any]], operator: str) -> bool:
    """Are the totals those of the oracle, but for estimates, which are near?"""
    oracle = expected(rows, operator, CHANGES[operator]["window"])
    for windowed_key, total in oracle.items():
        if "users" in total and windowed_key in totals:
            estimate = totals[windowed_key]["users"]
            assert abs(estimate - total["users"]) <= 0.05 * total["users"], windowed_key
            total["users"] = estimate
    return totals == oracle


def pairs() -> list[Any]:
    """Every pair: a few, every grouping with one operator (`slow`), and all others (`long`)."""
    quick = {("local", "word_count"), *((LOOKED_AT[name], name) for name in QUICK_OPERATORS)}
    looked_at = {(grouping, operator) for operator, grouping in LOOKED_AT.items()}
    slow = looked_at.union(zip(GROUPINGS, cycle(OPERATORS), strict=False))

    def mark(pair: tuple[str, str]) -> Any:
        return [] if pair in quick else pytest.mark.slow if pair in slow else pytest.mark.long

    return [
        pytest.param(grouping, operator, marks=mark((grouping, operator)))
        for grouping in GROUPINGS
        for operator in OPERATORS
    ]


def mark_operator(operator: str) -> Any:
    """What `make test` leaves out is slow."""
    return [] if operator in QUICK_OPERATORS else pytest.mark.slow


operators = pytest.mark.parametrize(
    "operator", [pytest.param(name, marks=mark_operator(name)) for name in OPERATORS]
)


@operators
def test_plain_spark_gives_the_totals_of_plain_python(matrix: Matrix, operator: str) -> None:
    assert is_exact(matrix.plain(operator), matrix.rows, operator)


@pytest.mark.parametrize(("grouping", "operator"), pairs())
def test_totals_are_exact_and_the_same_under_every_grouping(
    matrix: Matrix, grouping: str, operator: str
) -> None:
    ran = matrix.run(grouping, operator)

    assert is_exact(ran.last, matrix.rows, operator)
    assert ran.last == matrix.plain(operator)
    assert ran.rejected == {"not_decoded": BROKEN}
    batches = [done for done in ran.batches if done.stats and done.stats.total]
    assert len(batches) >= 2
    for done in batches:
        assert done.stats is not None
        handled = done.stats.total + sum(done.stats.rejected.values())
        routes = ran.journal.routes(done.batch).values()
        if grouping == "auto":
            assert done.choice is not None
            assert bool(routes) is (done.choice.way != "local")
        elif grouping in UNROUTED:
            assert not routes
            assert done.routing is None
        else:
            assert sum(each.records for each in routes) == handled


@pytest.mark.parametrize(
    ("operator", "grouping"),
    [
        pytest.param(*looked_at, marks=mark_operator(looked_at[0]))
        for looked_at in LOOKED_AT.items()
    ],
)
def test_a_job_routes_each_row_once_and_moves_it_once(
    matrix: Matrix, operator: str, grouping: str
) -> None:
    routed, plain = matrix.run(grouping, operator), matrix.run("none", operator)

    assert routed.types == plain.types
    assert list_stages(routed) == ROUTED
    assert list_stages(plain) == (PLAIN_IN_PYTHON if operator == "paced" else PLAIN)
    keys = [key for row in matrix.rows for key in keys_of(row, operator)]
    hashes = Counter(int(np.uint64(hash_text(key)).view(np.int64)) for key in keys)
    evaluated = Counter(read_evaluated(evaluated_folder(routed.job.checkpoint)))
    assert not hashes - evaluated
    assert (evaluated - hashes).total() == BROKEN


@operators
def test_the_oracle_bites(matrix: Matrix, operator: str) -> None:
    totals = {windowed_key: dict(total) for windowed_key, total in matrix.plain(operator).items()}
    windowed_key = next(iter(totals))
    column = "volume" if operator == "vwap" else next(iter(totals[windowed_key]))
    totals[windowed_key][column] += 1
    assert not is_exact(totals, matrix.rows, operator)
