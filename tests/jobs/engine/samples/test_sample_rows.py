"""A sample through Spark: keys by an expression, a job's rows, and what its operator takes."""

import json
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.support.running.in_process import job_over
from unskew.config.errors import UsageError
from unskew.config.models.operator import OperatorOptions
from unskew.config.types.units import Duration
from unskew.grouping.simulation.loads import hash_as_spark
from unskew.jobs.commands.prediction.key_expression import parse_key_expression
from unskew.jobs.engine.samples.sample_rows import (
    evaluate_keys_in,
    measure_work,
    sample_job_in,
)
from unskew.jobs.kafka.newest_records import RawSample
from unskew.jobs.operators.paced import Paced, PacedOptions
from unskew.jobs.operators.user_code.rows import RowOperator

VALUES = [{"user": f"u{number % 7}", "n": number} for number in range(40)] + [{"n": 1.50}]
RAW = RawSample(
    [None] * len(VALUES),
    [json.dumps(value).encode() for value in VALUES],
    [0] * len(VALUES),
    list(range(len(VALUES))),
    [1_700_000_000_000] * len(VALUES),
    len(VALUES),
)


@pytest.mark.spark
def test_keys_without_spark_are_those_that_spark_makes(spark: SparkSession) -> None:
    for text in (
        "value",
        "get_json_object(value, '$.user')",
        "get_json_object(value, '$.n')",
        "from_json(cast(value as string), 'user STRING, n INT').user",
    ):
        expression = parse_key_expression(text)
        assert expression is not None
        own = [None if key is None else key.decode() for key in expression.evaluate(RAW)]
        assert own == list(evaluate_keys_in(spark, RAW, text))

    for wrong in ("nobody(value)", "from_json(value", "colour", "count(*)"):
        with pytest.raises(UsageError, match=r"^--key: ") as raised:
            evaluate_keys_in(spark, RAW, wrong)
        assert len(str(raised.value).splitlines()) == 1


@pytest.mark.spark
def test_rows_go_where_sparks_own_hash_sends_them(spark: SparkSession) -> None:
    rows = spark.range(0, 200).select(sf.xxhash64("id").alias("hash")).repartition(7, "hash")
    sent = rows.select("hash", sf.spark_partition_id().alias("partition")).toArrow()

    hashes = sent["hash"].to_numpy().astype(np.int64).view(np.uint64)
    assert hash_as_spark(hashes, 7).tolist() == sent["partition"].to_pylist()


@pytest.mark.spark
def test_a_jobs_sample_has_its_keys_its_rejected_records_and_the_operators_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = job_over(
        {"type": "files", "path": str(tmp_path / "in")},
        tmp_path,
        "sampled",
        operator={"type": "paced", "key": "user", "cost": "1 ms", "partial_bytes": 100},
        decode={"type": "json", "schema": "user STRING"},
        event_time="timestamp",
        window={"type": "none"},
        lateness=None,
    )

    sample = sample_job_in(spark, job, RAW, 100)

    assert sorted(set(sample.texts.to_pylist())) == [f"u{number}" for number in range(7)]
    assert (sample.hashes.size, np.unique(sample.hashes).size, sample.rejected) == (40, 7, 1)
    assert sample.work is not None
    assert sample.work.cost == pytest.approx(1e-3, rel=0.5)
    assert sample.work.partial_bytes == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("panes", [1, 5])
def test_the_time_of_a_key_is_told_from_that_of_a_record(panes: int) -> None:
    keys = np.random.default_rng(1).integers(0, 400, 4000)
    rows = pa.table(
        {
            "pane": np.arange(4000) % panes,
            "key": [f"k{key}" for key in keys],
            "key_hash": keys,
            "event_time": pa.array(np.zeros(4000, np.int64), pa.timestamp("us", "UTC")),
        }
    )
    options = PacedOptions(cost=Duration.parse("20 us"), key_cost=Duration.parse("500 us"))

    work = measure_work(Paced.from_options(options), rows)

    assert work.cost == pytest.approx(20e-6, rel=0.8)
    assert work.setup == pytest.approx(500e-6, rel=0.3)
    assert not work.native


class Opening(RowOperator):
    """Counts rows of keys, for each of which something is opened."""

    Options = OperatorOptions
    key = "key"
    partial_columns: ClassVar = {"rows": "BIGINT"}
    merge: ClassVar = {"rows": "sum(rows)"}

    @property
    def _types(self) -> dict[str, pa.DataType]:  # type: ignore[override]
        return {"rows": pa.int64()}  # without a Spark that parses them

    def open(self, key: str) -> str:
        time.sleep(0.005)
        return key

    def start(self) -> int:
        return 0

    def add(self, state: int, row: Any) -> int:
        return state + len(row.opened[:1])

    def result(self, state: int) -> dict[str, int]:
        return {"rows": state}


def test_what_one_trial_opened_costs_the_next_again() -> None:
    keys = np.random.default_rng(1).integers(0, 60, 4000)
    rows = pa.table(
        {
            "pane": np.zeros(4000, np.int64),
            "key": [f"k{key}" for key in keys],
            "key_hash": keys,
            "event_time": pa.array(np.zeros(4000, np.int64), pa.timestamp("us", "UTC")),
        }
    )

    work = measure_work(Opening(OperatorOptions()), rows)

    assert work.setup == pytest.approx(0.005, rel=0.4)
