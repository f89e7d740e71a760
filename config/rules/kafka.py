"""Kafka sections: what is read, and how the client is secured."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from unskew.config.models.source import KafkaSource
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, is_given, rule
from unskew.grouping.options.suggestions import find_nearest, one_of

ALTERNATIVES_MAX = 8
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@rule("source")
def offsets_are_of_read_topics(source: Any) -> Iterator[Contradiction]:
    """`start` names offsets of the source's own topics only; others would fail at the start."""
    start = getattr(source, "start", None)
    if not isinstance(start, dict) or source.pattern is not None:
        return
    read = source.assign or dict.fromkeys(source.subscribe or ())
    chosen_by = "assign" if source.assign else "subscribe"
    for topic, offsets in start.items():
        if topic not in read:
            near = find_nearest(topic, read)
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
    if is_given(source, "records_per_task") and not source.split:
        yield Contradiction(
            ("source", "records_per_task"),
            "records_per_task contradicts source.split false: a Kafka partition is then one task",
            "remove one of them",
        )


def find_reading_field(source: KafkaSource, topic: str) -> str:
    """The field by which a source reads a topic; empty if it does not."""
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
    """Is it safe to match here? A pattern with many choices may backtrack without end."""
    repeats = len(re.findall(r"[*+?{]", pattern)) > 2 or re.search(r"\)[*+?{]", pattern)
    return not repeats and pattern.count("|") <= ALTERNATIVES_MAX


@rule("source")
def source_is_secured_as_a_whole(source: Any) -> Iterator[Contradiction]:
    """SASL and TLS options work only with the protocol that asks for them."""
    if isinstance(source, KafkaSource):
        yield from find_insecure_options(source.options, ("source", "options"))


def find_insecure_options(options: Mapping[str, Any], path: Path) -> Iterator[Contradiction]:
    """Options of SASL and TLS that the chosen protocol does not use, or lacks."""
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
