"""Produces the records of dead letters into the topics that they came from."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Producer

from unskew.config.errors import ExternalError, UsageError
from unskew.config.models.job import Job
from unskew.config.models.source import KafkaSource
from unskew.config.rules.kafka import find_reading_field
from unskew.jobs.kafka.native_options import translate_options
from unskew.jobs.kafka.options import make_connection_options
from unskew.jobs.replay.dead_letter import Coordinates, DeadLetter
from unskew.jobs.replay.ledger import Ledger
from unskew.jobs.sinks.stored_dead_letters import ANSWER_SECONDS

CHUNK = 500
"""How many are sent before the ledger notes them; a kill in between sends these once more."""
REPLAYED = "replayed"
BEFORE = "replayed already, or a duplicate"
NO_RECORD = "no record of the source"
NOT_READ = "of a topic that the job does not read"
CUT_SHORT = (
    "truncated to fit the topic of dead letters: take the whole record from its source topic"
)
_HEADER = "replayed_from"


def require_source(job: Job) -> KafkaSource:
    """The job's source; a UsageError if records cannot be produced into it."""
    if not isinstance(job.source, KafkaSource):
        raise UsageError(
            f"dead-letters: {job.name}: source.type {job.source.type}: only Kafka takes records"
            " again; put repaired records into a new file of the source's folder"
        )
    return job.source


def replay(job: Job, dead_letters: Iterable[DeadLetter], ledger: Ledger) -> Counter[str]:
    """Send each record once, to its topic and partition and with its time; counts by outcome."""
    source = require_source(job)
    servers = source.bootstrap_servers
    options = make_connection_options(servers, source.options)
    producer = Producer(
        {
            **translate_options(options, f"dead-letters: {job.name}"),
            "enable.idempotence": True,
            "message.timeout.ms": int(ANSWER_SECONDS * 1000),
            "log_level": 0,
        }
    )
    outcomes: Counter[str] = Counter()
    for chunk in _cut_chunks(_leave_out(dead_letters, source, ledger, outcomes)):
        _send(producer, servers, chunk)
        ledger.add(list(chunk))
        outcomes[REPLAYED] += len(chunk)
    return outcomes


def _leave_out(
    dead_letters: Iterable[DeadLetter], source: KafkaSource, ledger: Ledger, outcomes: Counter[str]
) -> Iterator[tuple[Coordinates, DeadLetter]]:
    """Yield the dead letters that are to be sent; count the others."""
    taken: set[Coordinates] = set()
    for dead_letter in dead_letters:
        coordinates = dead_letter.coordinates
        if coordinates is None:
            outcomes[NO_RECORD] += 1
        elif source.pattern is None and not find_reading_field(source, coordinates.topic):
            outcomes[NOT_READ] += 1
        elif dead_letter.cut:
            outcomes[CUT_SHORT] += 1
        elif coordinates in ledger or coordinates in taken:
            outcomes[BEFORE] += 1
        else:
            taken.add(coordinates)
            yield coordinates, dead_letter


def _cut_chunks(
    dead_letters: Iterable[tuple[Coordinates, DeadLetter]],
) -> Iterator[Mapping[Coordinates, DeadLetter]]:
    chunk: dict[Coordinates, DeadLetter] = {}
    for coordinates, dead_letter in dead_letters:
        chunk[coordinates] = dead_letter
        if len(chunk) == CHUNK:
            yield chunk
            chunk = {}
    if chunk:
        yield chunk


def _send(producer: Producer, servers: str, chunk: Mapping[Coordinates, DeadLetter]) -> None:
    failed: list[str] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(f"{message.topic()}: {error.str()}")

    for coordinates, dead_letter in chunk.items():
        where = f"{coordinates.topic}/{coordinates.partition}/{coordinates.offset}"
        producer.produce(
            coordinates.topic,
            dead_letter.value,
            dead_letter.key,
            coordinates.partition,
            timestamp=coordinates.timestamp_ms,
            headers=[(_HEADER, where.encode())],
            on_delivery=delivered,
        )
        producer.poll(0)
    unsent = producer.flush(ANSWER_SECONDS + 5)
    if failed or unsent:
        raise ExternalError(
            f"dead-letters: {servers}: {failed[0] if failed else 'no answer'}; the last"
            f" {len(chunk)} may have been sent in part and are not in the ledger"
        )
