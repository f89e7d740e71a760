"""The sinks and the dead-letter target that a job names."""

from typing import cast

from unskew.config.models.job import Job
from unskew.config.models.sink import TargetOptions
from unskew.config.registry import Registry
from unskew.config.specs import DEAD_LETTERS, SINKS
from unskew.jobs.sinks.base import DeadLetters, Sink, Target


def make_sinks(job: Job) -> list[Sink]:
    """Make a job's sinks."""
    return [cast("Sink", _load(SINKS, sink)) for sink in job.sinks]


def make_dead_letter_target(job: Job) -> DeadLetters:
    """Make a job's dead-letter target."""
    return cast("DeadLetters", _load(DEAD_LETTERS, job.dead_letters))


def list_targets(job: Job) -> list[tuple[str, Target]]:
    """List sinks and dead letters, each with the path of its section."""
    sinks = [(f"sinks[{index}]", sink) for index, sink in enumerate(make_sinks(job))]
    return [*sinks, ("dead_letters", make_dead_letter_target(job))]


def _load(registry: Registry, options: TargetOptions) -> Target:
    """Load the target as its own class: the section's is made at run time, so tasks lack it."""
    target: type[Target] = registry.load(options.type)
    return target.model_construct(**{name: getattr(options, name) for name in target.model_fields})
