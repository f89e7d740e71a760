"""Checks that need a process of their own: one for all members together.

Run as a program it routes with the members that its argument names (`module:list`) and prints a
digest of everything that can be seen of each, or the error that stopped it.
"""

import hashlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tests.grouping.family.checks_of_routes import inputs
from tests.grouping.family.members import Member, batches, outcome, play_all, record_steps, times_of
from unskew.grouping.registry import GROUPINGS

ROOT = Path(__file__).resolve().parents[3]
STOPPED = "stopped: "
HASH_SEEDS = ("0", "1", "4294967295")


def digest(member: Member) -> str:
    """Of the routes of odd and skewed streams, with partitions that come and go, and of states."""
    seen = hashlib.blake2b(digest_size=16)
    for partitions in (1, 5, 64):
        grouping = member.make(partitions, source=1, sources=2)
        steps, _ = record_steps(member.make(partitions), batches(count=3))
        seen.update(play_all(grouping, steps).tobytes())
        grouping.restore(grouping.snapshot())
        for active in ([partitions - 1], [0, partitions // 2], range(partitions)):
            grouping.set_active(active)
            for keys in inputs().values():
                grouping.begin_batch()
                seen.update(grouping.route(keys, times_of(keys.size)).tobytes())
        seen.update(repr(outcome(grouping)).encode())
    return seen.hexdigest()


def digests(where: str, **environment: str) -> dict[str, str]:
    """The digest of each member in `where`, made in a process with this environment.

    An error in any of them is one here.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.grouping.family.processes", where],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    digests_by_member: dict[str, str] = json.loads(done.stdout)
    assert digests_by_member, f"no members in {where}"
    stopped = {name: what for name, what in digests_by_member.items() if what.startswith(STOPPED)}
    assert not stopped, str(stopped)
    return digests_by_member


def hash_seeds_change_nothing(where: str, folder: Path) -> None:
    """Routes and states are the same under every PYTHONHASHSEED."""
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda seed: digests(where, PYTHONHASHSEED=seed), HASH_SEEDS))
    for name, expected in runs[0].items():
        assert all(run[name] == expected for run in runs), f"{name} differs by hash seed"


def kernels_stay_within_their_arrays(where: str, folder: Path) -> None:
    """Compiled again with checks of every index, no kernel leaves its arrays, nor routes otherwise.

    Machine code with and without checks must not share a cache: `folder` is that of this run.
    """
    checked = digests(where, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(folder))
    assert checked == digests(where), "checking indices changes routes"


PROCESS_CHECKS = {
    function.__name__: function
    for function in (hash_seeds_change_nothing, kernels_stay_within_their_arrays)
}


def main(members: Sequence[Member]) -> None:
    """Print the digests."""
    digests_by_member = {}
    for member in members:
        GROUPINGS.setdefault(member.kind.name, member.kind)
        try:
            digests_by_member[str(member)] = digest(member)
        except (ArithmeticError, AssertionError, IndexError, ValueError) as error:
            digests_by_member[str(member)] = f"{STOPPED}{error!r}"
    sys.stdout.write(json.dumps(digests_by_member))


if __name__ == "__main__":
    module, name = sys.argv[1].split(":")
    with np.errstate(all="raise", under="ignore"):
        main(getattr(importlib.import_module(module), name))
