"""Reads a job's dead letters from where it writes them."""

from collections.abc import Iterator

from unskew.config.models.job import Job
from unskew.jobs.replay.dead_letter import DeadLetter, read_coordinates
from unskew.jobs.sinks.kafka import CUT_FROM_BYTES
from unskew.jobs.sinks.registry import make_dead_letter_target


def read_dead_letters(job: Job) -> Iterator[DeadLetter]:
    """Read those that are there now; a few may come twice."""
    for fields in make_dead_letter_target(job).read(job):
        yield DeadLetter(
            fields["reason"],
            fields.get("key"),
            fields.get("value"),
            read_coordinates(fields),
            fields.get(CUT_FROM_BYTES) is not None,
        )
