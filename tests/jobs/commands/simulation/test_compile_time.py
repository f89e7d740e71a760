"""The rate of routing is that of compiled kernels, also of those that only later batches call."""

import subprocess
import sys

import pytest

from unskew.grouping.registry import GROUPINGS

# The clock shows how many kernels were compiled or loaded so far, so the seconds are those of the
# routing's part; in a process of its own, where none is yet.
CODE = """
import sys
from unskew.grouping import kernels
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.streams.traces import open_trace
from unskew.jobs.commands.simulation.compiling import compile_kernels

compiled = lambda: float(sum(len(each.dispatcher.overloads) for each in kernels._KERNELS))
trace = open_trace("zipf:keys=5000,z=1.4,records=2400000")
scenario = Scenario(partitions=8, sources=int(sys.argv[2]), batch_records=1200000, cost_us=10.0)
spec = GroupingSpec.parse(sys.argv[1])
compile_kernels(spec, scenario)
report = simulate(trace, spec, scenario, compiled)
print(compiled() > 0, report.routing_seconds)
"""
QUICK = {("level", 3), ("whole", 3)}


@pytest.mark.parametrize(
    ("grouping", "sources"),
    [
        pytest.param(name, sources, marks=[] if (name, sources) in QUICK else pytest.mark.slow)
        for name in GROUPINGS
        for sources in (1, 3)
    ],
)
def test_nothing_is_compiled_within_the_time_of_routing(grouping: str, sources: int) -> None:
    command = [sys.executable, "-c", CODE, grouping, str(sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0.0"]
