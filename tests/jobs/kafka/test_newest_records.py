"""A bounded sample of a topic, and what `unskew compare` says where there is none."""

import json

import numpy as np
import pytest
from confluent_kafka import Producer

from unskew.config.models.source import FilesSource, KafkaSource
from unskew.jobs.__main__ import main
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.kafka.newest_records import Limits, sample_source, sample_topic
from unskew.jobs.local.child_processes import find_free_ports

pytestmark = pytest.mark.e2e
ASKED = ("--partitions", "4", "--cost", "1ms")


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Three partitions of which the first has two thirds of the records, and one that is empty."""
    broker.create_topics(["sampled"], partitions=3)
    producer = Producer({"bootstrap.servers": broker.address})
    for number in range(3000):
        partition = 0 if number % 3 else 1
        value = json.dumps({"user": f"u{number % 50}"})
        producer.produce("sampled", value, b"k%d" % (number % 20), partition)
    assert producer.flush(30) == 0
    return "sampled"


def test_the_newest_records_are_taken_by_each_partitions_share(broker: Broker, topic: str) -> None:
    seen: list[tuple[int, int]] = []

    sample = sample_topic(
        topic, broker.address, Limits(300, 30), {}, lambda done, asked: seen.append((done, asked))
    )

    assert (len(sample.keys), sample.there) == (300, 3000)
    assert sorted(sample.offsets[i] for i in range(300) if sample.partitions[i] == 0) == list(
        range(1800, 2000)
    )
    assert [sample.partitions.count(number) for number in range(3)] == [200, 100, 0]
    assert seen[-1] == (300, 300)
    assert sample.values[0] is not None
    assert min(sample.timestamps_ms) > 0


def test_of_several_topics_each_has_its_part_and_lies_as_tasks_read_it(broker: Broker) -> None:
    topics = ["sampled-one", "sampled-two"]
    broker.create_topics(topics, partitions=2)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for number in range(200):
        producer.produce(topics[number % 2], b"%d" % number, partition=number % 3 % 2)
    assert producer.flush(30) == 0
    source = KafkaSource(type="kafka", bootstrap_servers=broker.address, subscribe=topics)

    read = sample_source(source, Limits(60, 30))

    assert read is not None
    sample = read.order_by_task()
    assert 50 <= len(sample.values) <= 64
    starts = np.flatnonzero(np.diff([-1, *sample.partitions]))
    assert len(starts) == 4  # one stretch for each partition of each topic


def test_what_only_spark_can_read_is_not_sampled() -> None:
    assert sample_source(FilesSource(type="files", path="."), Limits(60, 1)) is None
    source = {"type": "kafka", "bootstrap_servers": "127.0.0.1:1", "subscribe": ["t"]}
    secured = KafkaSource(**source, options={"kafka.security.protocol": "SSL"})
    assert sample_source(secured, Limits(60, 1)) is None


def test_a_topic_is_answered_by_its_keys_or_by_an_expression(
    broker: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--topic", topic, "--bootstrap-servers", broker.address, *ASKED, "--json")
    keys = []
    for more in ((), ("--key", "get_json_object(value, '$.user')")):
        assert main(["compare", *asked, *more]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["sample"]["records"] == 3000
        keys.append(result["keys"]["keys"])
    assert keys == [20, 50]


def test_what_cannot_be_sampled_is_one_line(
    broker: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topics(["nothing-in-it"], partitions=2)
    nowhere = f"127.0.0.1:{find_free_ports(1)[0]}"
    cases = [
        ("nothing-in-it", broker.address, 2, "nothing-in-it on"),
        ("sampledd", broker.address, 1, 'no such topic; did you mean "sampled"?'),
        (topic, nowhere, 1, "no broker answers within 5 s"),
    ]
    for name, servers, code, problem in cases:
        assert main(["compare", "--topic", name, "--bootstrap-servers", servers, *ASKED]) == code
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert problem in printed.err
