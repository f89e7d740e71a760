"""Compiling kernels before a clock runs, and what is said meanwhile: minutes on a busy machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, make_up_feedback

_KEYS = 4096
"""So many that tables of keys grow."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LINE = "compiling kernels, once on this machine; it may take minutes"


@contextmanager
def tell_compiling() -> Iterator[None]:
    """Say so on standard error, once, if a kernel is compiled; a terminal has a bar that does."""
    from numba.core import event  # noqa: PLC0415 - on use

    class FirstCompilation(event.Listener):
        """Hears of what is not in the cache yet."""

        said = sys.stderr.isatty()

        def on_start(self, _event: object) -> None:
            if not self.said:
                print(_LINE, file=sys.stderr, flush=True)
            self.said = True

        def on_end(self, _event: object) -> None:
            pass

    with event.install_listener("numba:compile", FirstCompilation()):
        yield


def compile_kernels(spec: GroupingSpec, scenario: Scenario) -> None:
    """Route made-up keys as the batches of a scenario do, also those that follow on others.

    The simulator routes a few keys before its clock runs, but has no reports and no agreement of
    sources then: what those call would be compiled within the time of routing.
    """
    router = spec.create(scenario, 0)
    keys = np.arange(_KEYS, dtype=np.uint64) * _SPREAD
    keys[::3] = _SPREAD
    times = np.arange(_KEYS)
    reports = make_up_feedback(scenario.partitions) if router.wants_feedback else None
    for feedback, agrees in ((None, False), (reports, router.wants_agreement)):
        if agrees:
            # They may agree on nothing: only a plan that is made up calls all that follows on one.
            router.agree([router.state] * scenario.sources)
        router.begin_batch(feedback, router.make_up_agreement(keys) if agrees else None)
        for _ in router.route_chunks([(keys, times if router.wants_timestamps else None)]):
            pass


@contextmanager
def show_steps(doing: str) -> Iterator[Callable[[str], None]]:
    """Show what is done now and for how long, on a terminal; call it with each step."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar, tell_compiling():
        task = bar.add_task(f"{doing} (the first time, kernels compile)", total=None)
        yield lambda step: bar.update(task, description=f"{doing} {step}")
