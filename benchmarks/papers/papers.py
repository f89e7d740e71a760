"""The five papers, in the order of the page."""

from benchmarks.papers.bands import with_bands
from benchmarks.papers.definitions import by_figure
from benchmarks.papers.tables.dstream import paper as dstream
from benchmarks.papers.tables.dynamic_key import paper as dynamic_key
from benchmarks.papers.tables.fish import paper as fish
from benchmarks.papers.tables.posg import paper as posg
from benchmarks.papers.tables.two_choices import paper as two_choices

_ALL = (two_choices.PAPER, fish.PAPER, fish.LARGE, dstream.PAPER, dynamic_key.PAPER, posg.PAPER)
PAPERS = tuple(with_bands(by_figure(paper)) for paper in _ALL)
