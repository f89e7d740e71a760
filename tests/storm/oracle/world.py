"""A world: the job of one case and what its records are like, drawn from one seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unskew.config.models.grouping import GROUPING_MODELS

TOTALED = ("word_count", "vwap", "hashtags", "aggregate")
ROWS = "rows"
OPERATORS = (*TOTALED, ROWS)
SINKS = ("files", "files", "kafka", "postgres", "table")
KEYS = ("zipf", "moving_hot", "single", "distinct")
WINDOWS: dict[str, dict[str, Any]] = {
    "none": {"type": "none"},
    "tumbling": {"type": "tumbling", "duration": "20 s"},
    "sliding": {"type": "sliding", "duration": "30 s", "slide": "10 s"},
}
AUTO = "auto"
_CHANGEABLE = tuple(name for name in GROUPING_MODELS if name != "none")
"""What one checkpoint may change among from start to start."""
_MERGED_ONLY = frozenset({AUTO, "fish", "posg"})
"""Refused for rows: what has a merge to choose by, or learns from the times of partials."""
SECONDS = {"tumbling": (20, 20), "sliding": (30, 10)}
"""Duration and slide of each window."""


@dataclass(frozen=True)
class World:
    """One case's job, but for its routing, which may change with every start."""

    seed: int
    operator: str
    window: str
    output: str
    sink: str
    source: str
    dead_letters: str
    table_format: str
    keys: str
    native: bool
    """Plain Spark's groupBy: no routing, no journal."""
    batches: int
    rows: int
    kafka_partitions: int
    merge_partitions: int
    lateness_seconds: int
    second_sink: bool = False
    """Do the results go into a folder too, beside the sink?"""

    @property
    def windowed(self) -> bool:
        """Has the job windows?"""
        return self.window != "none"

    @property
    def merges(self) -> bool:
        """Does the job make totals? Otherwise its rows go into a table as they are."""
        return self.operator != ROWS

    def __str__(self) -> str:
        kind = "plain Spark" if self.native else "routed"
        sink = f"{self.table_format} table" if self.sink == "table" else self.sink
        sink += " and files" if self.second_sink else ""
        return (
            f"{self.operator}, {kind}, {self.source} to {sink}, window {self.window},"
            f" {self.output}, keys {self.keys}, {self.batches} batches of {self.rows}"
        )


@dataclass(frozen=True)
class Routing:
    """What may change from one start of a job to the next."""

    grouping: str
    partitions: int
    seed: int
    records_per_task: int


def world_of(seed: int, **fixed: Any) -> World:
    """The world of a seed; `fixed` fields are as given, and the others still agree with them."""
    rng = random.Random(f"world {seed}")
    drawn = World(
        seed=seed,
        operator=rng.choice(OPERATORS),
        window=rng.choice(tuple(WINDOWS)),
        output=rng.choice(("append", "update")),
        sink=rng.choice(SINKS),
        source=rng.choice(("files", "files", "kafka")),
        dead_letters=rng.choice(("files", "kafka")),
        table_format=rng.choice(("parquet", "parquet", "delta")),
        keys=rng.choice(KEYS),
        native=rng.random() < 0.12,
        batches=rng.randint(4, 8),
        rows=rng.randint(60, 400),
        kafka_partitions=rng.randint(1, 2),
        merge_partitions=rng.randint(1, 4),
        lateness_seconds=rng.choice((20, 60)),
    )
    agreeing = _agreeing(_with_one_sink(replace(drawn, **fixed), fixed, rng), rng)
    # Of its own draw, so that a seed's other fields are what they were without it.
    wanted = random.Random(f"second sink {seed}").random() < 0.4
    return replace(agreeing, second_sink=wanted and _takes_files_too(agreeing))


def _takes_files_too(world: World) -> bool:
    """Files take complete windows only. What a table had before a replay is its own to tell."""
    return world.windowed and world.output == "append" and world.sink != "table"


def _with_one_sink(world: World, fixed: Mapping[str, Any], rng: random.Random) -> World:
    """Rows go into a table; where the sink is given, and another, they are totals instead."""
    if world.merges or world.sink == "table":
        return world
    if "sink" in fixed:
        return replace(world, operator=rng.choice(TOTALED))
    return replace(world, sink="table")


def _agreeing(world: World, rng: random.Random) -> World:
    """Files take complete windows only, totals without windows are updates, rows have neither."""
    if not world.merges:
        return replace(world, window="none", output="append")
    if world.sink == "files" or (world.sink == "table" and world.table_format == "parquet"):
        window = world.window if world.windowed else rng.choice(tuple(SECONDS))
        world = replace(world, window=window, output="append")
    if not world.windowed:
        world = replace(world, output="update")
    if world.sink == "table" and world.windowed:
        # A table may have a batch that is to run again, which then moves no watermark; which one it
        # was is only known for files.
        world = replace(world, source="files")
    if world.source == "kafka" and world.windowed and world.kafka_partitions > 1:
        # How Spark shares a batch out over several partitions is not ours to foretell, so nothing
        # may be late there.
        world = replace(world, lateness_seconds=3600)
    return world


def routing_of(world: World, rng: random.Random) -> Routing:
    """One way to route, drawn for each start."""
    names = [name for name in _CHANGEABLE if world.merges or name not in _MERGED_ONLY]
    grouping = "none" if world.native else rng.choice(names)
    return Routing(grouping, rng.randint(1, 6), rng.randint(0, 9), rng.choice((40, 150, 1000)))
