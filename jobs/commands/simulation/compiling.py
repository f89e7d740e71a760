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
"""Enough for tables of keys to grow."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_LINE = "compiling kernels, once on this machine; it may take minutes"


@contextmanager
def announce_compiling() -> Iterator[None]:
    """Print a line on standard error, once, if a kernel compiles; a terminal has a bar for it."""
    from numba.core import event  # noqa: PLC0415 - loads numba

    class FirstCompilation(event.Listener):
        """Prints at the first compilation of a kernel that is not in the cache."""

        printed = sys.stderr.isatty()

        def on_start(self, _event: object) -> None:
            if not self.printed:
                print(_LINE, file=sys.stderr, flush=True)
            self.printed = True

        def on_end(self, _event: object) -> None:
            pass

    with event.install_listener("numba:compile", FirstCompilation()):
        yield


def compile_kernels(spec: GroupingSpec, scenario: Scenario) -> None:
    """Compile all kernels of a scenario by routing made-up keys, also with reports and a plan.

    The simulator's own warm-up has neither, so the kernels that use them would compile within the
    measured time of routing.
    """
    router = spec.create(scenario, 0)
    keys = np.arange(_KEYS, dtype=np.uint64) * _SPREAD
    keys[::3] = _SPREAD
    times = np.arange(_KEYS)
    reports = make_up_feedback(scenario.partitions) if router.wants_feedback else None
    for feedback, agrees in ((None, False), (reports, router.wants_agreement)):
        if agrees:
            # The states may agree on nothing: a made-up plan compiles the kernels that follow one.
            router.agree([router.state] * scenario.sources)
        made_up = router.make_up_agreement(keys)
        router.begin_batch(feedback, made_up if agrees else None)
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
    with bar, announce_compiling():
        task = bar.add_task(f"{doing} (kernels compile on first use)", total=None)
        yield lambda step: bar.update(task, description=f"{doing} {step}")
