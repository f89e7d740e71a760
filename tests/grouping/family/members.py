"""What the checks run over: every member of the family with its options, and streams to route.

Members are derived from the registry. Each stands there once for every combination of its options
that name a choice (where those are many: for every choice alone and for the last ones together),
and once more, in `AT_BOUNDS`, for every bound of an option that is a number.
"""

import itertools
import math
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from unskew.grouping.base import Feedback, Grouping, Int32s, Int64s, UInt64s
from unskew.grouping.hashing import mix64
from unskew.grouping.registry import GROUPINGS, create

PARTITIONS = 5
BATCH_RECORDS = 4000
BATCHES = 4
_HEAVY_ROWS = 64
_COMBINED_MAX = 8


@dataclass(frozen=True)
class Member:
    """A grouping with some of its options set."""

    kind: type[Grouping]
    options: tuple[tuple[str, object], ...] = ()

    def make(
        self, partitions: int = PARTITIONS, *, source: int = 0, sources: int = 1, seed: int = 1
    ) -> Grouping:
        """A new grouping, made as a job makes it: by name."""
        setting: dict[str, Any] = {"source": source, "sources": sources, "seed": seed}
        return create(self.kind.name, partitions=partitions, **setting, **dict(self.options))

    def __str__(self) -> str:
        return ":".join([self.kind.name, *(f"{name}={value}" for name, value in self.options)])


@dataclass(frozen=True)
class Step:
    """One call of a grouping: a batch's begin (no keys), or some records."""

    keys: UInt64s | None = None
    times: Int64s | None = None
    feedback: Feedback | None = None

    def play(self, grouping: Grouping) -> Int32s:
        """Make the call; the routes, none for a begin."""
        if self.keys is None:
            grouping.begin_batch(self.feedback)
            return np.empty(0, np.int32)
        return grouping.route(self.keys, self.times)


def choices_of(field: FieldInfo) -> tuple[object, ...]:
    """The values of an option that names a choice; none for other options."""
    if field.annotation is bool:
        return (False, True)
    return typing.get_args(field.annotation) if _origin(field) is Literal else ()


def _origin(field: FieldInfo) -> object:
    return typing.get_origin(field.annotation)


def numbers_of(kind: type[Grouping]) -> dict[str, dict[str, Any]]:
    """The schemas of the options that are numbers, by name."""
    numbers = {}
    for name, schema in kind.Params.model_json_schema().get("properties", {}).items():
        for option in schema.get("anyOf", [schema]):
            if option.get("type") in {"integer", "number"}:
                numbers[name] = option
    return numbers


def bounds_of(schema: Mapping[str, Any]) -> list[float]:
    """The least and the greatest number that an option takes, where they are bounded."""
    whole = schema["type"] == "integer"
    bounds: list[float] = []
    for bound, exclusive, towards in (
        ("minimum", "exclusiveMinimum", math.inf),
        ("maximum", "exclusiveMaximum", -math.inf),
    ):
        if bound in schema:
            bounds.append(int(schema[bound]) if whole else float(schema[bound]))
        elif exclusive in schema:
            bounds.append(math.nextafter(schema[exclusive], towards))
    return bounds


def is_valid(kind: type[Grouping], options: Mapping[str, object]) -> bool:
    """Does the grouping take these options together?"""
    try:
        kind.Params(**options)
    except ValidationError:
        return False
    return True


def combinations(
    chosen: Mapping[str, tuple[object, ...]], defaults: Mapping[str, object]
) -> Iterator[dict[str, object]]:
    """Every combination of choices without the defaults in it, or some where they are many."""
    others = {
        name: [value for value in values if value != defaults[name]]
        for name, values in chosen.items()
    }
    if math.prod(map(len, chosen.values())) <= _COMBINED_MAX:
        for values in itertools.product(*chosen.values()):
            pairs = zip(chosen, values, strict=True)
            yield {name: value for name, value in pairs if value != defaults[name]}
        return
    yield {}
    yield from ({name: value} for name, values in others.items() for value in values)
    yield {name: values[-1] for name, values in others.items()}


def members_of(kind: type[Grouping]) -> Iterator[Member]:
    """The grouping with combinations of its options that name a choice."""
    fields = kind.Params.model_fields
    chosen = {name: choices_of(field) for name, field in fields.items() if choices_of(field)}
    for options in combinations(chosen, {name: fields[name].default for name in chosen}):
        if is_valid(kind, options):
            yield Member(kind, tuple(options.items()))


def members_at_bounds(kind: type[Grouping]) -> Iterator[Member]:
    """Each member of a grouping with each number, one at a time, at each of its bounds."""
    for member in members_of(kind):
        for name, schema in numbers_of(kind).items():
            for value in bounds_of(schema):
                options = {**dict(member.options), name: value}
                if is_valid(kind, options):
                    yield Member(kind, tuple(options.items()))


MEMBERS = [member for kind in GROUPINGS.values() for member in members_of(kind)]
AT_BOUNDS = [member for kind in GROUPINGS.values() for member in members_at_bounds(kind)]


def hashes(numbers: Sequence[int] | Int64s) -> UInt64s:
    """Key hashes as a job makes them: spread over all 64 bits."""
    return np.array([mix64(np.uint64(number + 1)) for number in numbers], np.uint64)


@cache
def _distinct(count: int) -> UInt64s:
    return hashes(range(count))


def distinct_keys(first: int, count: int) -> UInt64s:
    """`count` keys, each once."""
    return _distinct(first + count)[first:].copy()


def zipf_keys(records: int, z: float = 1.4, distinct: int = 2000, seed: int = 0) -> UInt64s:
    """Records whose keys follow Zipf's law."""
    shares = np.arange(1, distinct + 1, dtype=np.float64) ** -z
    ranks = np.random.default_rng(seed).choice(distinct, records, p=shares / shares.sum())
    return _distinct(distinct)[ranks]


def times_of(records: int, begin: int = 0) -> Int64s:
    """Times of so many records that follow each other, in microseconds: a batch takes 25 s."""
    gap = 25_000_000 // BATCH_RECORDS
    return (begin + np.arange(records)) * gap + np.arange(records) * 7919 % gap


@cache
def batches(
    z: float = 1.4, count: int = BATCHES, records: int = BATCH_RECORDS, seed: int = 0
) -> tuple[tuple[UInt64s, Int64s], ...]:
    """A skewed stream in batches."""
    keys, times = zipf_keys(records * count, z, seed=seed), times_of(records * count)
    cuts = [slice(start, start + records) for start in range(0, keys.size, records)]
    return tuple((keys[cut], times[cut]) for cut in cuts)


def report(keys: UInt64s, routes: Int32s, partitions: int, *, by_record: bool) -> Feedback:
    """What partitions tell of a batch: a row for each record, or one for each heavy key."""
    costs = 1e-4 * (1 + (keys >> np.uint64(20)) % np.uint64(9)).astype(np.float64)
    records = np.bincount(routes, minlength=partitions)
    busy = np.bincount(routes, costs, partitions)
    if by_record:
        return Feedback(records, busy, routes, keys, np.ones(keys.size, np.int64), costs)
    pairs, which = np.unique(
        np.stack([routes.astype(np.uint64), keys]), axis=1, return_inverse=True
    )
    counts = np.bincount(which.ravel())
    heavy = np.argsort(-counts, kind="stable")[:_HEAVY_ROWS]
    seconds = np.bincount(which.ravel(), costs)
    rows = (pairs[0][heavy].astype(np.int32), pairs[1][heavy], counts[heavy], seconds[heavy])
    return Feedback(records, busy, *rows)


def record_steps(
    grouping: Grouping, stream: Sequence[tuple[UInt64s, Int64s]], pieces: int = 3
) -> tuple[list[Step], list[Int32s]]:
    """Route a stream, batch by batch and each in pieces; the calls that were made and the routes.

    The calls can be played again to another grouping, with the very same feedback.
    """
    steps: list[Step] = []
    routes: list[Int32s] = []
    feedback = None
    for number, (keys, times) in enumerate(stream):
        batch = [Step(feedback=feedback)]
        cuts = np.linspace(0, keys.size, pieces + 1, dtype=int).tolist()
        for start, stop in itertools.pairwise(cuts):
            batch.append(Step(keys[start:stop], times[start:stop]))
        answers = [step.play(grouping) for step in batch]
        steps += batch
        routes += answers
        partitions = grouping.setting.partitions
        whole = np.concatenate(answers)
        feedback = report(keys, whole, partitions, by_record=number % 2 == 0)
    return steps, routes


def play_all(grouping: Grouping, steps: Sequence[Step]) -> Int32s:
    """Play the calls; all routes in one array."""
    return np.concatenate([np.empty(0, np.int32), *(step.play(grouping) for step in steps)])


def outcome(grouping: Grouping) -> tuple[str, list[int], dict[str, float]]:
    """All that can be seen of a grouping but its routes to come."""
    return grouping.snapshot().checksum(), grouping.hot_keys().tolist(), grouping.signals()


class Checks(dict[str, Callable[[Member], None]]):
    """Checks by name; used as a decorator it takes one more."""

    def __call__(self, function: Callable[[Member], None]) -> Callable[[Member], None]:
        self[function.__name__] = function
        return function
