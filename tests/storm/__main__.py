"""Run cases until time is up. A failure prints the command that repeats it; exit code 1 then."""

import argparse
import itertools
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.storm import ledger
from tests.storm.cases import CASES, QUICK, Storm
from tests.storm.faults.outages import NotPossibleHereError
from tests.storm.harness.counts import Counts


def main(words: list[str] | None = None) -> int:
    """Run cases; 1 if any failed."""
    given = _arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if given.page:
        ledger.write_page()
        return 0
    seeds = tuple(given.seed or [random.SystemRandom().randrange(10**6)])
    kinds = tuple(given.only or take_turns(QUICK, seeds[-1]))
    drawn = f"{'+'.join(kinds)} from {seeds}"
    commit = ledger.commit() if given.record else ""
    counts, failed, cases = Counts(), list[str](), 0
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    # Interrupted, it ends what it started, and tells what was done until then.
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        cases_to_run = itertools.islice(plan(kinds, seeds), given.cases)
        for done, command in _run(Storm(stack, folder), cases_to_run, given.minutes):
            counts.add(done)
            failed += command
            cases += 1
            if given.record and (done.faults or command):
                ledger.record(done, drawn, command, commit)
                ledger.write_page()
    print(_summary(counts, cases, failed))
    if not failed:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument(
        "--seed",
        type=int,
        action="append",
        help="of the first case; the next one has the next seed. Given several times, cases take"
        " turns (default: one drawn now, and printed)",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=CASES,
        help=f"a kind of case; given several times, they take turns (default: {' '.join(QUICK)})",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=3.0,
        help="then no fault is begun: the case under way runs to its end, and counts (default: 3)",
    )
    parser.add_argument("--cases", type=int, default=10**6, help="at most this many cases")
    parser.add_argument(
        "--record", action="store_true", help="add each case's counts to the ledger"
    )
    parser.add_argument("--page", action="store_true", help="only write docs/reliability.md again")
    return parser.parse_args(words)


def plan(kinds: tuple[str, ...], seeds: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """Kind and seed of each case: every kind with each of the seeds, then with the next ones."""
    for number in itertools.count():
        for kind, seed in itertools.product(kinds, seeds):
            yield kind, seed + number


def take_turns(kinds: tuple[str, ...], seed: int) -> tuple[str, ...]:
    """The kinds, of which another is the first for the next seed: few minutes do not meet all."""
    first = seed % len(kinds)
    return kinds[first:] + kinds[:first]


def _run(
    storm: Storm, cases: Iterator[tuple[str, int]], minutes: float
) -> Iterator[tuple[Counts, list[str]]]:
    """Run cases until the time is over: what each did, and the command of one that failed."""
    deadline = time.monotonic() + 60 * minutes
    for kind, seed in cases:
        seconds = deadline - time.monotonic()
        if seconds < 0:
            break
        done = Counts()
        if _case(storm, kind, seed, done, seconds):
            yield done, []
        else:
            # Only what ended with exact results, or a refusal that is allowed, counts as tried.
            yield Counts(outcomes=Counter(failed=1)), [_command(kind, seed)]


def _command(kind: str, seed: int) -> str:
    return f"python -m tests.storm --only {kind} --seed {seed} --cases 1"


def _case(storm: Storm, kind: str, seed: int, done: Counts, seconds: float) -> bool:
    """Run one, whose faults end with its seconds; was it as it must be?"""
    started, passed = time.monotonic(), True
    try:
        storm.run(kind, seed, done, seconds)
    except NotPossibleHereError as reason:
        done.outcomes[f"{kind} skipped: {reason}"] += 1
    except Exception:  # noqa: BLE001 - whatever it is, the other cases go on
        passed = False
        done.outcomes["failed"] += 1
        print(f"{kind} {seed}: FAILED\n{traceback.format_exc()}", flush=True)
        print(f"repeat: {_command(kind, seed)}", flush=True)
    said = ", ".join(f"{count} {what}" for what, count in (done.faults + done.outcomes).items())
    print(f"{kind} {seed}: {time.monotonic() - started:.0f} s: {said}", flush=True)
    for note in done.notes:
        print(f"  note: {note}", flush=True)
    return passed


def _summary(counts: Counts, cases: int, failed: list[str]) -> str:
    lines = [f"{cases} cases, {len(failed)} failed"]
    for title in ("faults", "points", "outcomes"):
        lines += [f"{title}:", *(f"  {n:6} {k}" for k, n in getattr(counts, title).most_common())]
    return "\n".join([*lines, *failed])


if __name__ == "__main__":
    sys.exit(main())
