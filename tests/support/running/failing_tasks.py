"""A job whose tasks fail on their first attempt: in every stage, and at every moment of a task.

What moment it is goes by the batch: before the first rows, after some, and after all, when the task
has done everything that it does.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from unskew.grouping.base import Chunk
from unskew.grouping.spark.router import Router, read_task_position
from unskew.jobs.operators.base import Operator
from unskew.jobs.query.partial import PartialStage
from unskew.jobs.query.pipeline import Pipeline, Planned

STAGES = ("route", "partial", "merge")
MOMENTS = ("start", "middle", "end")
_Item = TypeVar("_Item")


class StruckError(RuntimeError):
    """What such a task fails with."""


@dataclass(frozen=True)
class Fault:
    """The fault of one stage; what it did is kept as files in `folder`."""

    stage: str
    folder: str

    def through(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Pass items on; the first attempt of one task a batch fails."""
        batch, partition = read_task_position()
        moment = MOMENTS[batch % len(MOMENTS)]
        context = TaskContext.get()
        assert context is not None
        struck = partition == 0 and context.attemptNumber() == 0
        if struck and moment == "start":
            self._strike(moment)
        for item in items:
            yield item
            if struck and moment == "middle":
                self._strike(moment)
        if struck:
            self._strike(moment)

    def _strike(self, moment: str) -> None:
        Path(self.folder, f"{self.stage}-{moment}").touch()
        raise StruckError(f"{self.stage} at the {moment}")


def _fields(given: Any) -> dict[str, Any]:
    return {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}


@dataclass(frozen=True)
class FailingRouter(Router):
    """Fails in the stage that reads and routes."""

    folder: str = ""

    def _route(self, chunks: Iterable[Chunk]) -> Iterator[pa.Array]:
        yield from Fault("route", self.folder).through(super()._route(chunks))


@dataclass(frozen=True)
class ImpureRouter(FailingRouter):
    """Routes another way in each attempt: what must never be."""

    def _route(self, chunks: Iterable[Chunk]) -> Iterator[pa.Array]:
        context = TaskContext.get()
        assert context is not None
        other = np.uint64(context.attemptNumber())
        yield from super()._route((keys ^ other, times) for keys, times in chunks)


@dataclass(frozen=True)
class FailingStage(PartialStage):
    """Fails in the stage that makes partials."""

    folder: str = ""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from Fault("partial", self.folder).through(super().__call__(batches))


class FailingPipeline(Pipeline):
    """A pipeline that fails in all of its stages, the last of which merges and writes."""

    router_class: ClassVar[type[FailingRouter]] = FailingRouter

    @property
    def struck(self) -> Path:
        """Where its faults leave their files."""
        folder = Path(f"{self.job.checkpoint}-struck")
        folder.mkdir(exist_ok=True)
        return folder

    def make_router(self, sources: int) -> Router:
        return self.router_class(**_fields(super().make_router(sources)), folder=str(self.struck))

    def make_stage(self, operator: Operator) -> PartialStage:
        return FailingStage(**_fields(super().make_stage(operator)), folder=str(self.struck))

    def build_results(self, spark: SparkSession) -> Planned:
        planned = super().build_results(spark)
        fault = Fault("merge", str(self.struck))
        totals = planned.rows.mapInArrow(fault.through, planned.rows.schema)
        return replace(planned, rows=totals)


class ImpurePipeline(FailingPipeline):
    """A failing pipeline whose retried tasks route otherwise."""

    router_class = ImpureRouter
