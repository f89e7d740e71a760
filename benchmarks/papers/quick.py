"""`make papers-quick`: the rows that have a band, in shorter streams."""

from collections.abc import Callable, Sequence

from benchmarks.papers.definitions import Paper, Results, Run


def quick_runs(paper: Paper) -> list[Run]:
    """What a paper's rows with a band need."""
    return [run for row in paper.rows if row.band is not None for run in row.ours.runs]


def judge(papers: Sequence[Paper], results: Results, say: Callable[[str], None]) -> list[str]:
    """A line for each figure that is outside its band; all of them are said."""
    problems = []
    for paper in papers:
        for row in paper.rows:
            if row.band is None:
                continue
            low, high = row.band
            ours = row.ours.of(results)
            inside = low <= ours <= high
            line = f"{paper.key} {row.figure}: {row.what}: {ours:.4g}, band {low:g} to {high:g}"
            say(f"{'ok' if inside else 'OUTSIDE'}: {line}")
            if not inside:
                commands = [run.shortened().command for run in row.ours.shown(results)]
                problems.append("\n".join([f"{line}; repeat:", *commands]))
    return problems
