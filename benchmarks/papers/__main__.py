"""The experiments of the five papers, re-measured in the simulator: `make papers`.

Runs that are kept in `benchmarks/results/papers.json` and whose sources have not changed since are
not repeated, so it may be cut off at any time (`--minutes`) and goes on where it was. What is
there becomes `docs/papers.md` and its plots. `--quick` measures the rows that have a band, in
shorter streams and always again, and fails when a figure is outside.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.papers.definitions import Figures, Paper, Run
from benchmarks.papers.measured import Kept, Store, measure, moved
from benchmarks.papers.page import PAGE, lacking_runs, write_page
from benchmarks.papers.papers import PAPERS
from benchmarks.papers.quick import judge, quick_runs
from benchmarks.papers.real_streams import parse_real, with_real
from benchmarks.papers.sources import ROOT, sources_of
from benchmarks.papers.tables.every_grouping import every_run
from unskew.grouping.errors import GroupingError
from unskew.grouping.simulation.streams.traces import open_trace

_CHANGES_SHOWN = 5
RESULTS = ROOT / "benchmarks" / "results" / "papers.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and write the page."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.quick:
        sys.exit(_run_quick(options.jobs, options.only))
    papers = _papers(parser, options)
    _check_only(parser, papers, options)
    out = options.out or ROOT / "docs"
    out.mkdir(parents=True, exist_ok=True)
    store = Store(options.results or (out / RESULTS.name if options.real else RESULTS))
    if not options.page:
        minutes = float("inf") if options.minutes is None else options.minutes
        until = time.monotonic() + 60 * minutes
        for run, kept in _measure_all(_wanted(papers, store, options), options.jobs, until):
            _say_moved(store.get(run), kept)
            store.keep(run, kept)
    store.forget_others([*(run for paper in papers for run in paper.runs), *every_run()])
    write_page(papers, store, out)
    print(f"{out / PAGE}: written")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make papers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the rows with a band; no page")
    parser.add_argument("--minutes", type=float, help="begin no run later than this")
    parser.add_argument(
        "--only", default="*", help="papers or figures that match: '004', '001 fig. 1*'"
    )
    parser.add_argument("--large", action="store_true", help="also what takes gigabytes")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    parser.add_argument("--out", type=Path, help="the page's folder")
    parser.add_argument("--results", type=Path, help="the file of kept runs")
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    parser.add_argument(
        "--real",
        action="append",
        default=[],
        metavar="PAPER.STREAM=SPEC",
        help="a real stream in the place of the one that stands in for it, only for the page in"
        " --out; may repeat",
    )
    return parser


def _wanted(papers: Sequence[Paper], store: Store, options: argparse.Namespace) -> list[Run]:
    """What is not kept or has become stale: first what was never measured, then the oldest."""
    chosen = [paper for paper in papers if options.large or not paper.large]
    lacking = lacking_runs(papers, store)
    runs = [
        run for run in _chosen(chosen, options.only) if run in lacking or not store.is_fresh(run)
    ]
    if options.real:
        specs = {word.partition("=")[2] for word in options.real}
        runs = [run for run in runs if run.trace in specs]
    return sorted(runs, key=lambda run: kept.measured if (kept := store.get(run)) else "")


def _papers(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Sequence[Paper]:
    if not options.real:
        return PAPERS
    if options.out is None:
        parser.error("--real: add --out DIR, so that the page of the project stays as it is")
    try:
        papers = with_real(PAPERS, parse_real(PAPERS, options.real))
        for word in options.real:
            open_trace(word.partition("=")[2])
    except (ValueError, GroupingError) as error:
        parser.error(str(error))
    return papers


def _check_only(
    parser: argparse.ArgumentParser, papers: Sequence[Paper], options: argparse.Namespace
) -> None:
    if not _chosen(papers, options.only):
        names = ", ".join(f"'{paper.key}'" for paper in papers)
        parser.error(f"--only {options.only}: matches none of {names} and their figures")


def _say_moved(before: Kept | None, after: Kept) -> None:
    """Say what another measurement changed, the first figures of it."""
    changes = [] if before is None else list(moved(before, after))
    for change in changes[:_CHANGES_SHOWN]:
        print(f"  moved: {change}")
    if len(changes) > _CHANGES_SHOWN:
        print(f"  moved: {len(changes) - _CHANGES_SHOWN} more figures")


def _run_quick(jobs: int, pattern: str) -> int:
    papers = [paper for paper in PAPERS if _runs_of(paper, pattern)]
    shortened = {run: run.shortened() for paper in papers for run in quick_runs(paper)}
    distinct = list(dict.fromkeys(shortened.values()))
    figures: dict[Run, Figures] = {
        run: kept.by_name for run, kept in _measure_all(distinct, jobs, float("inf"))
    }
    problems = judge(papers, {run: figures[short] for run, short in shortened.items()}, print)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _chosen(papers: Sequence[Paper], pattern: str) -> list[Run]:
    runs = [run for paper in papers for run in _runs_of(paper, pattern)]
    if fnmatchcase("every grouping", pattern):
        runs += every_run()
    return list(dict.fromkeys(runs))


def _runs_of(paper: Paper, pattern: str) -> list[Run]:
    if fnmatchcase(paper.key, pattern):
        return list(paper.runs)
    named = [(row.figure, row.ours.runs) for row in paper.rows]
    named += [(plot.name, plot.runs) for plot in paper.plots]
    return [
        run
        for name, runs in named
        if fnmatchcase(name, pattern) or fnmatchcase(f"{paper.key} {name}", pattern)
        for run in runs
    ]


def _measure_all(runs: Sequence[Run], jobs: int, until: float) -> Iterator[tuple[Run, Kept]]:
    say = _progress(len(runs))
    # Of the sources that are loaded now: they may change while this goes on.
    sources = {run: sources_of(run.name, run.trace) for run in runs}
    if jobs == 1:
        for run in runs:
            if time.monotonic() >= until:
                return
            kept = measure(run, sources[run])
            say(run, kept)
            yield run, kept
        return
    with ProcessPoolExecutor(jobs) as pool:
        pending = {pool.submit(_measure_until, run, sources[run], until): run for run in runs}
        for future in as_completed(pending):
            result = future.result()
            if result is not None:
                say(pending[future], result)
                yield pending[future], result


def _measure_until(run: Run, sources: str, until: float) -> Kept | None:
    # The monotonic clock of Linux is the same in all processes.
    return measure(run, sources) if time.monotonic() < until else None


def _progress(total: int) -> Callable[[Run, Kept], None]:
    began, done = time.monotonic(), 0

    def say(run: Run, kept: Kept) -> None:
        nonlocal done
        done += 1
        left = (time.monotonic() - began) / done * (total - done)
        print(
            f"{done}/{total}, {left / 60:.1f} min left: {kept.seconds:.1f} s: {run.command}",
            flush=True,
        )

    return say


if __name__ == "__main__":
    main()
