"""One case of a storm: its seed, its folder, its counts, and until when faults may meet its job."""

import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.storm.harness.counts import Counts
from tests.storm.harness.services import Services
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import world_of

_POINT_SECONDS = 1200.0


@dataclass(frozen=True)
class Case:
    """What the faults of a case are drawn from and counted in.

    Once its time is over no further fault is carried out: the job runs to its end, and is compared
    with the oracle, so that the faults until then count.
    """

    kind: str
    seed: int
    folder: Path
    services: Services
    counts: Counts
    seconds: float
    _began: float = field(default_factory=time.monotonic)

    def rng(self) -> random.Random:
        """What is drawn for the faults; the world is drawn from the seed alone."""
        return random.Random(f"{self.kind} {self.seed}")

    def is_over(self) -> bool:
        """Is the time for faults over?"""
        return self.seconds_left() <= 0

    def seconds_left(self) -> float:
        """How long to wait for a point of a batch: until the time is over, and not for ever."""
        return min(_POINT_SECONDS, self._began + self.seconds - time.monotonic())

    def stage(self, folder: Path | None = None, **fixed: Any) -> Stage:
        """The seed's world, prepared for its first start; some of its fields may be given."""
        name = f"{self.kind}-{self.seed}-{os.getpid()}"
        stage = Stage(world_of(self.seed, **fixed), folder or self.folder, self.services, name)
        stage.prepare()
        return stage
