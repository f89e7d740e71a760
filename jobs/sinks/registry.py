"""The sinks and the dead-letter target that a job names."""

from typing import cast

from unskew.config.models.job import Job
from unskew.config.models.sink import TargetOptions
from unskew.config.registry import Registry
from unskew.config.specs import DEAD_LETTERS, SINKS
from unskew.jobs.sinks.base import DeadLetters, Sink, Target


def sinks_of(job: Job) -> list[Sink]:
    """A job's sinks."""
    return [cast("Sink", _loaded(SINKS, sink)) for sink in job.sinks]


def dead_letters_of(job: Job) -> DeadLetters:
    """A job's dead-letter target."""
    return cast("DeadLetters", _loaded(DEAD_LETTERS, job.dead_letters))


def targets_of(job: Job) -> list[tuple[str, Target]]:
    """Sinks and dead letters, each with the path of its section."""
    sinks = [(f"sinks[{index}]", sink) for index, sink in enumerate(sinks_of(job))]
    return [*sinks, ("dead_letters", dead_letters_of(job))]


def _loaded(registry: Registry, options: TargetOptions) -> Target:
    """The target as its own class: the section's class is made at run time, so tasks lack it."""
    target: type[Target] = registry.load(options.type)
    return target.model_construct(**{name: getattr(options, name) for name in target.model_fields})
