"""`unskew test`: a job over sample records, compared with the results that they must give."""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from unskew.config.errors import UsageError
from unskew.config.shipped import resolve_job

if TYPE_CHECKING:
    from unskew.jobs.engine.samples.try_out import Tried

DIFFERENT = 1
_VIOLATIONS_MAX = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Run a job over sample records, a line each, with a Spark of its own: no broker; nothing"
        " outside is written. Its results are compared with the expected ones; the"
        " operator must be mergeable: the records, split in any way, merge to the same results."
        " Exit codes: 0 all is as expected, 1 it is not, 2 the job or a file is wrong."
    )
    parser.add_argument("job", metavar="JOB", help="a job file")
    parser.add_argument(
        "--samples", metavar="FILE", help="the records (default: samples.jsonl beside the job)"
    )
    parser.add_argument(
        "--expected",
        metavar="FILE",
        help="the results, a JSON object a line (default: expected.jsonl beside the job)",
    )
    parser.add_argument("--write", action="store_true", help="write the results as the expected")


def run(arguments: argparse.Namespace) -> int:
    """Try the job; the exit code says whether all is as expected."""
    from unskew.jobs.commands.run import quiet_spark  # noqa: PLC0415 - loads Spark
    from unskew.jobs.engine.samples.try_out import try_out  # noqa: PLC0415

    folder = resolve_job(arguments.job).parent
    samples = Path(arguments.samples or folder / "samples.jsonl")
    expected = Path(arguments.expected or folder / "expected.jsonl")
    wanted = None if arguments.write else _read_expected(expected)
    if not samples.is_file():
        raise UsageError(f"test: {samples}: does not exist; write sample records, one a line")
    quiet_spark(debug=arguments.debug)
    with TemporaryDirectory(prefix="unskew-test-") as temporary:
        tried = try_out(arguments.job, samples, Path(temporary))
    if wanted is None:
        expected.write_text("".join(f"{_write_line(row)}\n" for row in tried.results), "utf-8")
        sys.stdout.write(f"{expected}: {len(tried.results)} results written\n")
        wanted = tried.results
    return _report(tried, wanted)


def _read_expected(file: Path) -> list[dict[str, Any]]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"test: {file}: {error.strerror}; --write makes it") from None
    problems, rows = [], []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            problems.append(f"test: {file}:{number}: no JSON: {error}; --write makes it again")
    if problems:
        raise UsageError(*problems)
    return rows


def _report(tried: "Tried", wanted: list[dict[str, Any]]) -> int:
    made, expected = (Counter(map(_write_line, rows)) for rows in (tried.results, wanted))
    lines = [f"- {line}" for line in sorted((expected - made).elements())]
    lines += [f"+ {line}" for line in sorted((made - expected).elements())]
    rejected = ", ".join(f"{count} {reason}" for reason, count in tried.rejected.items())
    same = (made & expected).total()
    lines.append(f"results: {made.total()}, as expected {same}")
    lines.append(f"rejected: {rejected or 'none'}")
    if tried.violations:
        lines.append("partial results do not merge: it matters how records are split")
        lines += [f"  {violation}" for violation in tried.violations[:_VIOLATIONS_MAX]]
    elif tried.violations is not None:
        lines.append("partial results merge, however the samples are split")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0 if made == expected and not tried.violations else DIFFERENT


def _write_line(row: dict[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)
