"""Every grouping with every operator over one Kafka topic: the same exact totals everywhere.

The oracle is plain Python over the records. Distinct users are an estimate: it must be near the
oracle's number, and the same to the last bit whatever the grouping, as all else is.
"""

import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.oracles import OPERATORS, WINDOWS, WindowedKey, expected, records
from tests.support.running.in_process import Ran, utc
from unskew.config.models.grouping import GROUPING_MODELS, UNROUTED
from unskew.jobs.kafka.broker import Broker

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

ROUTED = [name for name in GROUPING_MODELS if name != "none"]
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
        self._plain: dict[str, Totals] = {}
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
        """A job over all of the topic, in several batches."""
        return Ran(
            self._spark,
            self._folder,
            f"{operator}-{grouping}",
            self._source,
            operator=OPERATORS[operator],
            grouping={"type": grouping},
            **CHANGES[operator],
        )

    def plain(self, operator: str) -> Totals:
        """The totals without a grouping; made once."""
        if operator not in self._plain:
            self._plain[operator] = self.run("none", operator).last
        return self._plain[operator]


@pytest.fixture(scope="module")
def matrix(
    spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Matrix]:
    with utc():
        yield Matrix(spark, broker, tmp_path_factory.mktemp("matrix"))


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
    """Every pair; in the quick suite every grouping with one operator."""
    quick = dict(zip(ROUTED, cycle(OPERATORS), strict=False))
    return [
        pytest.param(
            grouping, operator, marks=[] if quick[grouping] == operator else pytest.mark.long
        )
        for grouping in ROUTED
        for operator in OPERATORS
    ]


@pytest.mark.parametrize("operator", OPERATORS)
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
        if grouping in UNROUTED:
            assert not routes
            assert done.routing is None
        else:
            assert sum(each.records for each in routes) == handled


def test_the_oracle_bites(matrix: Matrix) -> None:
    for operator in OPERATORS:
        totals = {
            windowed_key: dict(total) for windowed_key, total in matrix.plain(operator).items()
        }
        windowed_key = next(iter(totals))
        column = "volume" if operator == "vwap" else next(iter(totals[windowed_key]))
        totals[windowed_key][column] += 1
        assert not is_exact(totals, matrix.rows, operator), operator
