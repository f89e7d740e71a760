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
    stages = []
    for name, plan in _walk(_read_plan(ran)):
        if name == "ShuffleExchange":
            target = plan.outputPartitioning()
            stages.append(f"Exchange {target.getClass().getSimpleName()} {target.numPartitions()}")
        elif re.search("Exchange|Python|Pandas|Arrow|StateStore", name):
            stages.append(name)
    return stages


def list_python_inputs(ran: Ran) -> list[set[str]]:
    """The columns that each evaluation of UDFs takes into Python, the last one first."""
    inputs = []
    for name, plan in _walk(_read_plan(ran)):
        if name == "ArrowEvalPython":
            udfs = [plan.udfs().apply(index) for index in range(plan.udfs().size())]
            taken = [udf.references().toSeq() for udf in udfs]
            inputs.append({each.apply(n).name() for each in taken for n in range(each.size())})
    return inputs


def _read_plan(ran: Ran) -> Any:
    return ran.query._jsq.streamingQuery().lastExecution().executedPlan()


def _walk(plan: Any) -> Iterator[tuple[str, Any]]:
    """The nodes of a plan, the last one first, each with its name."""
    name = plan.getClass().getSimpleName().removesuffix("Exec")
    # What Spark may still change while a query without state runs: children of none, to its plan.
    if name == "AdaptiveSparkPlan":
        yield from _walk(plan.executedPlan())
    elif name.endswith("QueryStage"):
        yield from _walk(plan.plan())
    else:
        yield name, plan
        for index in range(plan.children().size()):
            yield from _walk(plan.children().apply(index))
