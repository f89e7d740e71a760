"""The ledger: what storms did, by commit, in a file of its own and as a page of the docs."""

import fcntl
import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.storm.harness.counts import Counts

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("ledger.json")
TEXT = Path(__file__).with_name("page.md")
PAGE = ROOT / "docs" / "reliability.md"
AIMS = {
    "query restarts": 1000,
    "driver or JVM kills": 300,
    "task killed": 200,
    "worker killed": 200,
    "daemon killed": 200,
    "executor killed": 200,
    "broker away and back": 50,
    "PostgreSQL away and back": 50,
    "disk full": 50,
    "power cut": 50,
    "driver frozen": 50,
    "file damaged, then read": 2000,
    "file damaged, then restart": 50,
}
_DRIVERS = ("driver killed", "JVM killed", "driver and JVM killed")


@dataclass
class Run:
    """All storms of one commit."""

    commit: str
    dates: list[str] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    cases: int = 0
    failed: list[str] = field(default_factory=list)
    """The commands that repeat what failed."""
    faults: dict[str, int] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)


def commit() -> str:
    """The commit that runs; with a mark if files other than the ledger's differ from it."""
    own = [f":(exclude){path.relative_to(ROOT)}" for path in (FILE, PAGE)]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *own)
    return _git("rev-parse", "--short=10", "HEAD") + ("-dirty" if changed else "")


def _git(*words: str) -> str:
    command = ["git", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def read(file: Path = FILE) -> list[Run]:
    """The runs, oldest first."""
    text = file.read_text() if file.exists() else ""
    return [Run(**run) for run in json.loads(text or "[]")]


def record(
    counts: Counts, seeds: str, failed: Iterable[str], commit: str, file: Path = FILE
) -> list[Run]:
    """Add a case of a storm to the run of the commit at which the storm began.

    Two storms may run at once: one waits until the other has written.
    """
    with file.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        runs = _add(read(file), counts, seeds, failed, commit)
        file.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n")
    return runs


def _add(
    runs: list[Run], counts: Counts, seeds: str, failed: Iterable[str], commit: str
) -> list[Run]:
    run = next((run for run in runs if run.commit == commit), None)
    if run is None:
        run = Run(commit)
        runs.append(run)
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    run.dates = sorted({*run.dates, today})
    run.seeds += [] if seeds in run.seeds else [seeds]
    run.cases += 1
    run.failed += failed
    for kind in ("faults", "points", "outcomes"):
        summed = Counter(getattr(run, kind)) + getattr(counts, kind)
        setattr(run, kind, dict(sorted(summed.items())))
    return runs


def page(runs: list[Run]) -> str:
    """The page of the docs."""
    faults, points, outcomes = (
        sum((Counter(getattr(run, kind)) for run in runs), Counter[str]())
        for kind in ("faults", "points", "outcomes")
    )
    shown = Counter({"driver or JVM kills": sum(faults[kind] for kind in _DRIVERS)}) + faults
    others = [kind for kind in shown if kind not in AIMS and kind not in _DRIVERS]
    return TEXT.read_text().format(
        counts=_table(
            ("what", "done", "aim"),
            [(kind, shown[kind], AIMS.get(kind, "")) for kind in (*AIMS, *sorted(others))],
        ),
        points=_table(("point", "kills"), points.most_common()),
        outcomes=_table(("outcome", "cases"), outcomes.most_common()),
        runs=_table(
            ("date", "commit", "cases", "failed", "seeds"),
            [
                (", ".join(r.dates), r.commit, r.cases, len(r.failed), ", ".join(r.seeds))
                for r in runs
            ],
        ),
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def write_page() -> None:
    """Write the page again from the ledger."""
    PAGE.write_text(page(read()))
