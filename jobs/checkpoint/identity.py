"""Which job a checkpoint belongs to, and what of that job may change at a restart.

`unskew.json` in the checkpoint's folder says which job made it. Settings that the merge's state
depends on may not change; the routing may, and then the groupings begin without their old state.
"""

import errno
import json
from collections.abc import Iterator
from typing import Any

from unskew.config.errors import ExternalError
from unskew.config.models.grouping import AutoGrouping
from unskew.config.models.job import Job
from unskew.config.models.source import KafkaSource
from unskew.jobs.checkpoint.files import list_names, read_bytes, write_bytes
from unskew.jobs.operators.registry import is_computed_by_spark

FILE = "unskew.json"
VERSION = 1
_GROUPING = "grouping.type"
_TAKE_ANOTHER = "name another checkpoint folder to start over"


def write_identity(job: Job, running: Job | None = None) -> None:
    """Write the job's identity, as it is now, into the checkpoint.

    `running` is the job with the grouping that `auto` has taken.
    """
    identity = make_identity(job)
    if running is not None:
        identity["fixed"][_GROUPING] = make_identity(running)["fixed"][_GROUPING]
    try:
        write_bytes(_name_file(job), (json.dumps(identity, indent=1) + "\n").encode())
    except OSError as error:
        raise ExternalError(describe_unusable(job.checkpoint, error)) from error


def has_routing_changed(job: Job) -> bool:
    """Did grouping, partitions or seed change since the last run?

    An ExternalError if the job cannot continue from its checkpoint.
    """
    before = check_identity(job)
    return before is not None and before["routing"] != make_identity(job)["routing"]


def check_identity(job: Job) -> dict[str, Any] | None:
    """The identity in the checkpoint, if any; an ExternalError if the job cannot continue there."""
    before = _read(job) if _has_progress(job) else None
    if before is not None:
        _check_fixed(job, before["fixed"], make_identity(job)["fixed"])
    return before


def describe_changed_code(job: Job) -> str | None:
    """A sentence about an operator's file that changed since the last run; None if it did not.

    An ExternalError if the partial columns or the merge changed: the merge's state depends on them.
    """
    before, now = check_identity(job), job.operator.code()
    if before is None or before.get("operator.code", now) == now:
        return None
    return (
        "operator.file: has changed since the last run; its partial columns and its merge have not,"
        " so totals continue"
    )


def is_made_by_spark(job: Job) -> bool | None:
    """Is the merge's state in the checkpoint plain Spark's? None if no query was started there."""
    before = check_identity(job)
    return None if before is None else before["fixed"].get(_GROUPING) == "none"


def compare_identity(job: Job) -> list[str]:
    """List what a restart in the checkpoint means; an ExternalError if it cannot continue there."""
    before = check_identity(job)
    if before is None:
        return [f"checkpoint: {job.checkpoint}: no query was started there; the job is a new one"]
    routing = _find_differences(before["routing"], make_identity(job)["routing"])
    return [
        *(
            f"{name}: was {_show(old)}, is {_show(new)}; the sources lose what they learnt about"
            " keys; totals continue"
            for name, old, new in routing
        ),
        *filter(None, [describe_changed_code(job)]),
        f"checkpoint: {job.checkpoint}: the job continues from there",
    ]


def _find_differences(
    before: dict[str, Any], now: dict[str, Any], path: str = ""
) -> Iterator[tuple[str, object, object]]:
    """Name each setting that differs; of a section of another type, its type alone."""
    names = (
        ["type"] if before.get("type") != now.get("type") else sorted(before.keys() | now.keys())
    )
    for name in names:
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _find_differences(old, new, f"{path}{name}.")
        elif old != new:
            yield f"{path}{name}", old, new


def make_identity(job: Job) -> dict[str, Any]:
    """The settings that may not change, and those of the routing."""
    return {
        "version": VERSION,
        "fixed": {
            "name": job.name,
            "source": _describe_source(job),
            "operator.type": job.operator.type,
            **job.operator.state(),
            "window": job.window.model_dump(mode="json"),
            "merge.partitions": job.merge.partitions,
            "merge.output": job.merge.output,
            # Plain Spark keeps other columns in its state than the merge of partials does.
            _GROUPING: "none" if is_computed_by_spark(job) else "any but none",
            "state store": "rocksdb",
        },
        "operator.code": job.operator.code(),
        "routing": {
            "grouping": job.grouping.model_dump(mode="json"),
            "partitions": job.partitions,
            "seed": job.seed,
        },
    }


def _describe_source(job: Job) -> dict[str, Any]:
    source = job.source
    if isinstance(source, KafkaSource):
        fields = {"subscribe", "pattern", "assign"}
        return {"type": source.type, **source.model_dump(include=fields, exclude_none=True)}
    return {"type": source.type, "path": source.path, "format": source.format}


def _check_fixed(job: Job, before: dict[str, Any], now: dict[str, Any]) -> None:
    if before["name"] != now["name"]:
        raise ExternalError(
            f'checkpoint: {job.checkpoint}: belongs to the job "{before["name"]}", not to'
            f' "{now["name"]}"; {_TAKE_ANOTHER}'
        )
    if isinstance(job.grouping, AutoGrouping):
        now = {**now, _GROUPING: before.get(_GROUPING)}  # auto keeps what the checkpoint has
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        raise ExternalError(
            *(
                f"{name}: was {_show(before.get(name))} when {job.checkpoint} was made, which"
                f" fixes it (got {_show(now[name])}); change it back, or {_TAKE_ANOTHER}"
                for name in changed
            )
        )


def _show(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_show(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_show, value))
    return str(value)


def _has_progress(job: Job) -> bool:
    """Did a query start here? A job that failed before that left only its identity."""
    try:
        return bool({"offsets", "metadata"} & set(list_names(job.checkpoint)))
    except OSError as error:
        raise ExternalError(describe_unusable(job.checkpoint, error)) from error


def _read(job: Job) -> dict[str, Any]:
    """The identity; a checkpoint with progress but without it belongs to some other query."""
    file = _name_file(job)
    try:
        data = read_bytes(file)
        known = None if data is None else _check_sections(json.loads(data))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ExternalError(f"checkpoint: {file}: cannot be read; restore it") from error
    except OSError as error:
        raise ExternalError(describe_unusable(job.checkpoint, error)) from error
    if known is None:
        raise ExternalError(
            f"checkpoint: {job.checkpoint}: belongs to a query that Unskew did not start;"
            f" {_TAKE_ANOTHER}"
        )
    if known["version"] != VERSION:
        raise ExternalError(
            f"checkpoint: {file}: of another version of Unskew (format {known['version']!r});"
            f" run that, or {_TAKE_ANOTHER}"
        )
    return known


def _check_sections(known: dict[str, Any]) -> dict[str, Any]:
    """Return `known`; raise KeyError or TypeError if a section is missing, or is none."""
    if known["version"] == VERSION:
        fixed, routing, name = known["fixed"], known["routing"], known["fixed"]["name"]
        if not (isinstance(fixed, dict) and isinstance(routing, dict) and isinstance(name, str)):
            raise TypeError("fixed, routing: expected sections")
    return known


def describe_unusable(checkpoint: str, error: OSError) -> str:
    """Write the message about a checkpoint that cannot be read or written."""
    full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    advice = "make room" if full else "check the path and its owner"
    return f"checkpoint: {checkpoint}: cannot be used: {error.strerror or error}; {advice}"


def _name_file(job: Job) -> str:
    return f"{job.checkpoint.rstrip('/')}/{FILE}"
