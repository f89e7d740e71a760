"""The five papers, in the order of the page."""

from benchmarks.papers.tables import dstream, dynamic_key, fish, posg, two_choices

PAPERS = (two_choices.PAPER, fish.PAPER, fish.LARGE, dstream.PAPER, dynamic_key.PAPER, posg.PAPER)
