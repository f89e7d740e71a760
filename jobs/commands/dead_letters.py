"""`unskew dead-letters`: list a job's dead letters, and produce their records once more."""

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from unskew.config.arguments import add_job_argument, choice, parse_whole_number
from unskew.config.errors import ExternalError, UsageError

if TYPE_CHECKING:
    from unskew.config.models.job import Job
    from unskew.jobs.replay.dead_letter import DeadLetter
    from unskew.jobs.replay.ledger import Ledger

_ACTIONS = ("list", "replay")
_SHOWN = 60


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "list: print a job's dead letters, each once, with the beginning of its value. replay:"
        " produce their records into the topics and partitions that they came from, with their"
        " keys and times; a ledger keeps (topic, partition, offset) of each, so that none is"
        " replayed twice. Of a record with several keys only some may have been rejected: replayed,"
        " the others count again. A record whose windows are over is dropped as late."
    )
    parser.add_argument("action", type=choice(*_ACTIONS), metavar="|".join(_ACTIONS))
    add_job_argument(parser)
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="as for unskew run"
    )
    parser.add_argument("--reason", metavar="REASON", help="only those with this reason")
    parser.add_argument(
        "--limit",
        type=parse_whole_number(1, 10**9),
        metavar="N",
        help="list or replay at most N",
    )
    parser.add_argument(
        "--from",
        dest="repaired",
        metavar="FILE",
        help="replay those in FILE (the output of list --json, repaired) instead of all",
    )
    parser.add_argument(
        "--ledger",
        metavar="FOLDER",
        help="the ledger of replays (default: unskew-replayed in the job's checkpoint)",
    )
    parser.add_argument("--json", action="store_true", help="list: a line of JSON each")


def run(arguments: argparse.Namespace) -> int:
    """List or replay."""
    # Imported here to keep --help fast.
    from unskew.config.loader import load  # noqa: PLC0415
    from unskew.jobs.commands.run import parse_overrides  # noqa: PLC0415
    from unskew.jobs.replay.ledger import FOLDER, Ledger  # noqa: PLC0415

    loaded = load(arguments.job, parse_overrides(arguments.set, command="dead-letters"))
    if loaded.job is None or loaded.problems:
        raise UsageError(*loaded.lines())
    if arguments.action == "list" and arguments.repaired:
        raise UsageError("dead-letters: --from: belongs to replay")
    job = loaded.job
    try:
        ledger = Ledger(arguments.ledger or f"{job.checkpoint.rstrip('/')}/{FOLDER}")
        if arguments.action == "list":
            _list(job, ledger, arguments)
        else:
            _replay(job, ledger, arguments)
    except OSError as error:
        raise ExternalError(f"dead-letters: {error.filename or ''}: {error.strerror}") from error
    return 0


def _list(job: "Job", ledger: "Ledger", arguments: argparse.Namespace) -> None:
    seen = set()
    for dead_letter in _choose(job, arguments):
        where = dead_letter.coordinates
        if where is not None and where in seen:
            continue
        seen.add(where)
        replayed = where is not None and where in ledger
        print(
            dead_letter.to_json(replayed=replayed)
            if arguments.json
            else _show(dead_letter, replayed)
        )


def _replay(job: "Job", ledger: "Ledger", arguments: argparse.Namespace) -> None:
    from unskew.jobs.replay.replaying import replay, require_source  # noqa: PLC0415

    require_source(job)
    with ledger.lock():
        outcomes = replay(job, _choose(job, arguments), ledger)
    for outcome, count in outcomes.most_common():
        print(f"{outcome}: {count:,}")
    if not outcomes:
        print("no dead letters", file=sys.stderr)


def _choose(job: "Job", arguments: argparse.Namespace) -> "Iterator[DeadLetter]":
    from unskew.jobs.replay.reading import read_dead_letters  # noqa: PLC0415

    given = arguments.repaired
    read = read_dead_letters(job) if given is None else _read_repaired(Path(given))
    wanted = (each for each in read if arguments.reason in {None, each.reason})
    return islice(wanted, arguments.limit)


def _read_repaired(file: Path) -> "Iterator[DeadLetter]":
    """Read all before the first is used: every line that is wrong is reported."""
    from unskew.jobs.replay.dead_letter import DeadLetter  # noqa: PLC0415

    read, problems = [], []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            read.append(DeadLetter.from_json(line))
        except ValueError as error:
            problems.append(f"{file}:{number}: is no dead letter as list --json prints it: {error}")
    if problems:
        raise UsageError(*problems)
    yield from read


def _show(dead_letter: "DeadLetter", replayed: bool) -> str:
    where = dead_letter.coordinates
    at = "-" if where is None else f"{where.topic}/{where.partition}/{where.offset}"
    value = repr(dead_letter.value)[2:-1] if dead_letter.value is not None else "null"
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    return f"{dead_letter.reason}  {at}  {shown}{'  (replayed)' if replayed else ''}"
