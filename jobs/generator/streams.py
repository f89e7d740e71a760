"""The streams by name, each with what counts it."""

from jobs.generator.lines import Lines
from jobs.generator.oracle import Totals, WordTotals
from jobs.generator.settings import Settings
from jobs.generator.stream import Stream

_STREAMS: dict[str, tuple[type[Stream], type[Totals]]] = {"lines": (Lines, WordTotals)}


def stream_of(settings: Settings) -> Stream:
    """The stream that the settings name."""
    return _STREAMS[settings.stream][0](settings)


def totals_of(stream: Stream) -> Totals:
    """Nothing yet of what the stream's job counts."""
    return _STREAMS[stream.settings.stream][1](stream)
