"""The streams by name, each with what counts it."""

from unskew.jobs.generator.settings import Settings
from unskew.jobs.generator.stream import Stream
from unskew.jobs.generator.streams.keys import TraceKeys
from unskew.jobs.generator.streams.lines import Lines
from unskew.jobs.generator.streams.posts import Posts
from unskew.jobs.generator.streams.trades import Trades
from unskew.jobs.generator.totals import KeyTotals, PostTotals, Totals, TradeTotals, WordTotals

_STREAMS: dict[str, tuple[type[Stream], type[Totals]]] = {
    "lines": (Lines, WordTotals),
    "trades": (Trades, TradeTotals),
    "posts": (Posts, PostTotals),
    "keys": (TraceKeys, KeyTotals),
}


def open_stream(settings: Settings) -> Stream:
    """Open the stream that the settings name."""
    return _STREAMS[settings.stream][0](settings)


def start_totals(stream: Stream) -> Totals:
    """Start the totals of what the stream's job counts, empty."""
    return _STREAMS[stream.settings.stream][1](stream)
