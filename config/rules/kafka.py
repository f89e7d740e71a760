"""Kafka sections: what is read, what is written, and how the client is secured."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from unskew.config.models.source import KafkaSource
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, given, rule
from unskew.grouping.options.suggestions import nearest, one_of

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@rule("source")
def offsets_are_of_read_topics(source: Any) -> Iterator[Contradiction]:
    """Offsets of other topics would be an error at the start."""
    start = getattr(source, "start", None)
    if not isinstance(start, dict) or source.pattern is not None:
        return
    read = source.assign or dict.fromkeys(source.subscribe or ())
    chosen_by = "assign" if source.assign else "subscribe"
    for topic, offsets in start.items():
        if topic not in read:
            near = nearest(topic, read)
            yield Contradiction(
                ("source", "start", topic),
                f'"{topic}" is not in source.{chosen_by}',
                f'did you mean "{near}"?' if near else one_of(read),
            )
        elif read[topic] is not None and set(offsets) != set(read[topic] or ()):
            yield Contradiction(
                ("source", "start", topic),
                f"partitions {sorted(offsets)} are not those of source.assign,"
                f" {sorted(read[topic] or ())}",
                "give an offset for each assigned partition, -2 is earliest",
            )


@rule("source")
def task_size_needs_split(source: Any) -> Iterator[Contradiction]:
    """Unsplit, a Kafka partition is one task, whatever its size."""
    if given(source, "records_per_task") and not source.split:
        yield Contradiction(
            ("source", "records_per_task"),
            "records_per_task contradicts source.split false: a Kafka partition is then one task",
            "remove one of them",
        )


@rule("source", "sinks")
def results_are_not_read_again(source: Any, sinks: list[Any]) -> Iterator[Contradiction]:
    """A job that reads its own results never ends."""
    for index, sink in enumerate(sinks):
        if sink.type == "kafka":
            yield from _read_again(source, sink, ("sinks", index, "topic"), "results")


@rule("source", "dead_letters")
def dead_letters_are_not_read_again(source: Any, dead_letters: Any) -> Iterator[Contradiction]:
    """A bad record that is read again is bad again."""
    if dead_letters.type == "kafka":
        yield from _read_again(source, dead_letters, ("dead_letters", "topic"), "dead letters")


def _read_again(source: Any, target: Any, path: Path, what: str) -> Iterator[Contradiction]:
    if not isinstance(source, KafkaSource):
        return
    if target.bootstrap_servers not in {None, source.bootstrap_servers}:
        return
    read_by = _reader(source, target.topic)
    if read_by:
        yield Contradiction(
            path,
            f'"{target.topic}" is read by source.{read_by}: {what} would be read again',
            "choose another topic",
        )


def _reader(source: KafkaSource, topic: str) -> str:
    if topic in (source.subscribe or ()):
        return "subscribe"
    if topic in (source.assign or ()):
        return "assign"
    if source.pattern is None or not _plain(source.pattern):
        return ""
    try:
        # Java's syntax and Python's agree for the patterns people write for topics.
        matches = re.fullmatch(source.pattern, topic)
    except re.error:
        return ""
    return "pattern" if matches else ""


def _plain(pattern: str) -> bool:
    """May it be tried here? Some patterns take for ever: those that repeat what repeats."""
    return len(re.findall(r"[*+{]", pattern)) <= 2 and not re.search(r"\)[*+{?]", pattern)


@rule("sinks", "dead_letters")
def dead_letters_are_apart(sinks: list[Any], dead_letters: Any) -> Iterator[Contradiction]:
    """Results and bad records in one topic could not be told apart."""
    if dead_letters.type != "kafka":
        return
    for index, sink in enumerate(sinks):
        same_servers = getattr(sink, "bootstrap_servers", None) == dead_letters.bootstrap_servers
        if sink.type == "kafka" and sink.topic == dead_letters.topic and same_servers:
            yield Contradiction(
                ("dead_letters", "topic"),
                f'"{sink.topic}" is also sinks[{index}].topic: results and bad records would mix',
                "choose another topic",
            )


@rule("source", "sinks")
def sinks_know_their_brokers(source: Any, sinks: list[Any]) -> Iterator[Contradiction]:
    """The default, the source's brokers, needs a source that has some."""
    for index, sink in enumerate(sinks):
        if sink.type == "kafka":
            yield from _knows_brokers(source, sink, ("sinks", index))


@rule("source", "dead_letters")
def dead_letters_know_their_brokers(source: Any, dead_letters: Any) -> Iterator[Contradiction]:
    """The default, the source's brokers, needs a source that has some."""
    if dead_letters.type == "kafka":
        yield from _knows_brokers(source, dead_letters, ("dead_letters",))


def _knows_brokers(source: Any, target: Any, path: Path) -> Iterator[Contradiction]:
    if target.bootstrap_servers is None and not isinstance(source, KafkaSource):
        yield Contradiction(
            (*path, "bootstrap_servers"),
            f"missing, and source.type {source.type} has none to take over",
            'add it, e.g. "bootstrap_servers: 127.0.0.1:9092"',
        )


@rule("source")
def source_is_secured_as_a_whole(source: Any) -> Iterator[Contradiction]:
    """SASL and TLS options work only with the protocol that asks for them."""
    if isinstance(source, KafkaSource):
        yield from _secured(source.options, ("source", "options"))


@rule("sinks")
def sinks_are_secured_as_a_whole(sinks: list[Any]) -> Iterator[Contradiction]:
    """SASL and TLS options work only with the protocol that asks for them."""
    for index, sink in enumerate(sinks):
        if sink.type == "kafka":
            yield from _secured(sink.options, ("sinks", index, "options"))


@rule("dead_letters")
def dead_letters_are_secured_as_a_whole(dead_letters: Any) -> Iterator[Contradiction]:
    """SASL and TLS options work only with the protocol that asks for them."""
    if dead_letters.type == "kafka":
        yield from _secured(dead_letters.options, ("dead_letters", "options"))


def _secured(options: Mapping[str, Any], path: Path) -> Iterator[Contradiction]:
    protocol = str(options.get("kafka.security.protocol", "PLAINTEXT"))
    if protocol not in _PROTOCOLS:
        yield Contradiction(
            (*path, "kafka.security.protocol"), f'no protocol "{protocol}"', one_of(_PROTOCOLS)
        )
        return
    for family, needed in (("kafka.sasl.", "SASL_SSL"), ("kafka.ssl.", "SSL")):
        used = next((name for name in options if name.startswith(family)), None)
        word = family.split(".")[1].upper()
        if used is not None and word not in protocol.split("_"):
            yield Contradiction(
                (*path, used),
                f"{used} has no effect with kafka.security.protocol {protocol}",
                f'write "kafka.security.protocol: {needed}"',
            )
    if protocol.startswith("SASL_") and "kafka.sasl.mechanism" not in options:
        yield Contradiction(
            (*path, "kafka.security.protocol"),
            f"{protocol} needs kafka.sasl.mechanism",
            'add it, e.g. "kafka.sasl.mechanism: SCRAM-SHA-512"',
        )
