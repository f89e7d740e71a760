"""What `grouping: auto` begins with."""

from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Producer

from tests.support.auto_worlds import PARTITIONS, draw_keys
from tests.support.running.in_process import job_over
from unskew.grouping.choice.ways import LEVEL
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.loads import HASHED, LOCAL, Work
from unskew.jobs.engine.choosing.first_choice import FirstChoice, _read_topics, choose_by_model
from unskew.jobs.kafka.broker import Broker


def chosen(z: float, work: Work, *, spark_alone: bool = False) -> FirstChoice:
    keys = draw_keys(z, 10_000)
    return choose_by_model(keys, PARTITIONS, PARTITIONS, work, Constants(), spark_alone)


def test_what_spark_computes_itself_is_left_to_it_and_that_is_said_to_be_final() -> None:
    choice = chosen(1.4, Work(1e-6, native=True), spark_alone=True)

    assert choice.way == HASHED
    assert choice.why.endswith("this choice is final for the checkpoint")
    assert chosen(1.4, Work(1e-6, native=True)).way == LOCAL


def test_another_way_than_level_is_taken_where_it_is_surely_faster() -> None:
    assert chosen(0.0, Work(30e-6, 1e-3)).way == LEVEL
    assert chosen(1.4, Work(100e-6, 1e-3)).way == LEVEL
    cheap = chosen(1.6, Work(1e-6))
    assert cheap.way == LOCAL
    assert "local saves 0." in cheap.why
    # Nearly as fast is no reason to leave the one that is never far behind.
    assert chosen(1.4, Work(100e-6, 2.5e-4)).way == LEVEL


@pytest.mark.e2e
def test_a_sample_of_topics_is_bounded_and_lies_as_tasks_read_it(
    broker: Broker, tmp_path: Path
) -> None:
    topics = ["sampled-one", "sampled-two"]
    broker.create_topics(topics, partitions=2)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for number in range(200):
        producer.produce(topics[number % 2], b"%d" % number, partition=number % 3 % 2)
    assert producer.flush(30) == 0
    source = {"type": "kafka", "bootstrap_servers": broker.address, "subscribe": topics}

    raw = _read_topics(job_over(source, tmp_path, "sampled"), 60)

    assert raw is not None
    assert 50 <= len(raw.values) <= 64
    starts = np.flatnonzero(np.diff([-1, *raw.partitions]))
    assert len(starts) == 4  # one stretch for each partition of each topic
    assert _read_topics(job_over({"type": "files", "path": "."}, tmp_path, "files"), 60) is None
