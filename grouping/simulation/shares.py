"""Records go to sources round robin: a segment of a trace cut into shares, routed, put together.

A grouping may read all of its share before it answers (`level` does), or answer chunk by chunk.
Each source therefore pulls its share itself; what is read ahead for one source waits for the
others, so memory follows the grouping that reads furthest ahead, and no more.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.grouping.base import Chunk, Float64s, Grouping, Int32s, Int64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.simulation.streams.traces import TraceChunk

Clock = Callable[[], float]


@dataclass(frozen=True)
class Piece:
    """Consecutive records of a trace, the first of which is number `start`."""

    start: int
    chunk: TraceChunk

    @property
    def stop(self) -> int:
        """The number of the record after the last."""
        return self.start + self.chunk.keys.size


class Cursor:
    """Walks through a trace and hands it out in pieces, none beyond a given record.

    No piece goes beyond a multiple of `step` either, so that routers can be looked at there.
    """

    def __init__(self, chunks: Iterator[TraceChunk], step: int) -> None:
        self._chunks = chunks
        self._step = step
        self._chunk = TraceChunk(np.empty(0, np.uint64))
        self._used = 0
        self.position = 0

    def take(self, stop: int) -> Piece | None:
        """The next piece, which does not go beyond record `stop`; none when that is reached."""
        if self.position >= stop:
            return None
        while self._used >= self._chunk.keys.size:
            self._chunk = next(self._chunks)
            self._used = 0
        room = min(stop - self.position, self._step - self.position % self._step)
        end = min(self._used + room, self._chunk.keys.size)
        cut = slice(self._used, end)
        costs = self._chunk.costs
        piece = Piece(
            self.position,
            TraceChunk(self._chunk.keys[cut], None if costs is None else costs[cut]),
        )
        self._used = end
        self.position = piece.stop
        return piece


class Segment:
    """A part of the trace that is routed as one batch."""

    def __init__(
        self,
        cursor: Cursor,
        stop: int,
        routers: Sequence[Grouping],
        timestamps: Callable[[int, int], Int64s],
        clock: Clock,
    ) -> None:
        self._cursor = cursor
        self._stop = stop
        self._routers = routers
        self._timestamps = timestamps
        self._clock = clock
        self._pieces: list[Piece | None] = []
        self._done = 0
        self._preparing = 0.0
        self.routing_seconds = 0.0

    def route(self) -> Iterator[tuple[Piece, Int32s]]:
        """The pieces of the segment with the partition of each record."""
        answers = [
            _Answers(router, router.route_chunks(self._share(source)))
            for source, router in enumerate(self._routers)
        ]
        while (piece := self._piece(self._done)) is not None:
            routes = np.empty(piece.chunk.keys.size, np.int32)
            for source, answer in enumerate(answers):
                mine = routes[self._first(piece, source) :: len(answers)]
                if mine.size:
                    mine[:] = self._timed(answer, mine.size)
            if not 0 <= routes.min() <= routes.max() < self._routers[0].setting.partitions:
                name = self._routers[0].name
                raise GroupingError(f"{name}: routed to a partition that does not exist")
            self._pieces[self._done] = None
            self._done += 1
            yield piece, routes
        for answer in answers:
            answer.end()

    def _timed(self, answer: "_Answers", count: int) -> Int32s:
        before = self._preparing
        began = self._clock()
        taken = answer.take(count)
        self.routing_seconds += self._clock() - began - (self._preparing - before)
        return taken

    def _piece(self, index: int) -> Piece | None:
        if index == len(self._pieces):
            piece = self._cursor.take(self._stop)
            if piece is None:
                return None
            self._pieces.append(piece)
        return self._pieces[index]

    def _first(self, piece: Piece, source: int) -> int:
        return (source - piece.start) % len(self._routers)

    def _share(self, source: int) -> Iterator[Chunk]:
        index = 0
        while True:
            began = self._clock()
            # A piece that is done without having been asked for had no record of this source.
            index = max(index, self._done)
            piece = self._piece(index)
            if piece is None:
                return
            first = self._first(piece, source)
            keys = np.ascontiguousarray(piece.chunk.keys[first :: len(self._routers)])
            times = None
            if self._routers[source].wants_timestamps:
                times = self._timestamps(piece.start, piece.stop)[first :: len(self._routers)]
            self._preparing += self._clock() - began
            if keys.size:
                yield keys, times
            index += 1


class _Answers:
    """A source's answers, however they are cut, taken by number."""

    def __init__(self, router: Grouping, answers: Iterator[Int32s]) -> None:
        self._router = router
        self._answers = answers
        self._rest = np.empty(0, np.int32)

    def take(self, count: int) -> Int32s:
        while self._rest.size < count:
            more = next(self._answers, None)
            if more is None:
                raise GroupingError(
                    f"{self._router.name}: {count - self._rest.size} records were not routed"
                )
            self._rest = more if self._rest.size == 0 else np.concatenate([self._rest, more])
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def end(self) -> None:
        """Let the router see that its share is over: it may still have to sum it up."""
        for more in self._answers:
            self._rest = np.concatenate([self._rest, more])
        if self._rest.size:
            raise GroupingError(f"{self._router.name}: {self._rest.size} records too many routed")


def seconds_of(costs: Float64s | None, unit_seconds: float) -> Float64s:
    """The cost in seconds of each record; one value stands for all where they cost the same."""
    return np.array([unit_seconds]) if costs is None else costs * unit_seconds
