"""The streams by name, each with what counts it."""

from jobs.generator.lines import Lines
from jobs.generator.posts import Posts
from jobs.generator.settings import Settings
from jobs.generator.stream import Stream
from jobs.generator.totals import PostTotals, Totals, TradeTotals, WordTotals
from jobs.generator.trades import Trades

_STREAMS: dict[str, tuple[type[Stream], type[Totals]]] = {
    "lines": (Lines, WordTotals),
    "trades": (Trades, TradeTotals),
    "posts": (Posts, PostTotals),
}


def stream_of(settings: Settings) -> Stream:
    """The stream that the settings name."""
    return _STREAMS[settings.stream][0](settings)


def totals_of(stream: Stream) -> Totals:
    """Nothing yet of what the stream's job counts."""
    return _STREAMS[stream.settings.stream][1](stream)
