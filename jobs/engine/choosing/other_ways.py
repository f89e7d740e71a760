"""Predicts a batch's overhead, its time beside the work, under its own grouping and others."""

from collections.abc import Mapping

from unskew.config.models.job import Job
from unskew.grouping.choice.ways import KEY, LEVEL, compute_loads_by_way
from unskew.grouping.simulation.batch_cost import Machine
from unskew.grouping.simulation.loads import Work
from unskew.jobs.engine.choosing.measured import measure
from unskew.jobs.local.machine_constants import find_calibration
from unskew.jobs.observe.batches.batch import OWN, BatchDone
from unskew.jobs.operators.registry import make_operator


class OtherWays:
    """Predicts batches of a job under other groupings; nothing if the machine is not calibrated."""

    def __init__(self, slots: int) -> None:
        calibration = find_calibration()
        self._machine = Machine(slots, calibration.constants) if calibration else None

    def of_batch(self, done: BatchDone, job: Job) -> Mapping[str, float]:
        """Seconds by grouping, of the batch's own under `OWN`; empty where they are not known."""
        machine, own = self._machine, job.grouping.type
        if machine is None or not make_operator(job.operator).merges:
            return {}
        batch = measure(done, own, machine.slots)
        if batch is None:
            return {}
        loads = {**compute_loads_by_way(batch, 1.0), own: batch.own_loads}
        carried = Work(0.0, partial_bytes=batch.partial_bytes)
        return {
            name: machine.batch_parts(way, loads[way], carried).seconds
            for name, way in ((OWN, own), (KEY, KEY), (LEVEL, LEVEL))
        }
