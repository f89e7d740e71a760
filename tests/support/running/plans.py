"""What Spark makes of a query: the stages of its plan, and what each call of a router was asked."""

import dataclasses
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.running.in_process import Ran
from unskew.grouping.base import Chunk
from unskew.grouping.spark.router import Router
from unskew.jobs.query.pipeline import Pipeline


@dataclass(frozen=True)
class CountingRouter(Router):
    """A router that leaves a file in `folder` of what each of its calls was asked to route."""

    folder: str = ""

    def _route(self, chunks: Iterable[Chunk]) -> Iterator[pa.Array]:
        asked = [np.empty(0, np.uint64)]

        def noted() -> Iterator[Chunk]:
            for keys, times in chunks:
                asked.append(keys.copy())
                yield keys, times

        yield from super()._route(noted())
        np.save(f"{self.folder}/{uuid.uuid4().hex}.npy", np.concatenate(asked))


class CountingPipeline(Pipeline):
    """A job's pipeline with such a router; its files are beside the checkpoint."""

    def make_router(self, sources: int) -> Router:
        given = super().make_router(sources)
        fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
        folder = evaluated_folder(self.job.checkpoint)
        folder.mkdir(parents=True, exist_ok=True)
        return CountingRouter(**fields, folder=str(folder))


def evaluated_folder(checkpoint: str) -> Path:
    """Where the pipeline above leaves its files."""
    return Path(f"{checkpoint}-evaluated")


def read_evaluated(folder: Path) -> list[int]:
    """The hashes that were routed, sorted, each as often as it was."""
    arrays = [np.load(file) for file in folder.glob("*.npy")]
    hashes: list[int] = np.sort(np.concatenate(arrays).view(np.int64)).tolist()
    return hashes


def list_stages(ran: Ran) -> list[str]:
    """The nodes that move rows, keep state or call Python in a job's last batch, last one first."""
    return _list_nodes(ran.query._jsq.streamingQuery().lastExecution().executedPlan())


def _list_nodes(plan: Any) -> list[str]:
    nodes = []
    name = plan.getClass().getSimpleName().removesuffix("Exec")
    # What Spark may still change while a query without state runs: children of none, to its plan.
    if name == "AdaptiveSparkPlan":
        return _list_nodes(plan.executedPlan())
    if name.endswith("QueryStage"):
        return _list_nodes(plan.plan())
    if name == "ShuffleExchange":
        target = plan.outputPartitioning()
        nodes = [f"Exchange {target.getClass().getSimpleName()} {target.numPartitions()}"]
    elif re.search("Exchange|Python|Pandas|Arrow|StateStore", name):
        nodes = [name]
    children = plan.children()
    for index in range(children.size()):
        nodes += _list_nodes(children.apply(index))
    return nodes
