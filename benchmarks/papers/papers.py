"""The five papers, in the order of the page."""

from benchmarks.papers.definitions import by_figure
from benchmarks.papers.tables.dstream import paper as dstream
from benchmarks.papers.tables.dynamic_key import paper as dynamic_key
from benchmarks.papers.tables.fish import paper as fish
from benchmarks.papers.tables.posg import paper as posg
from benchmarks.papers.tables.two_choices import paper as two_choices

PAPERS = tuple(
    map(
        by_figure,
        (
            two_choices.PAPER,
            fish.PAPER,
            fish.LARGE,
            dstream.PAPER,
            dynamic_key.PAPER,
            posg.PAPER,
        ),
    )
)
