"""A share in pieces: chunks are held until there are enough records to route at once."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s

Columns = tuple[NDArray[Any], ...]
RoutePiece = Callable[..., None]
"""Gets the columns of a piece, and the routes of its records to fill in."""
_Held = tuple[Columns, list[Int32s]]
"""What of a chunk is in a piece, and the parts of the chunk's routes so far."""
_NO_ROUTES = np.empty(0, np.int32)


def route_pieces(
    chunks: Iterable[Columns], piece_records: int, route_piece: RoutePiece
) -> Iterator[Int32s]:
    """Hold up to `piece_records`, route them as one, and answer in the chunks' own shapes.

    The first column has an entry a record. How a share is cut into chunks changes no piece.
    """
    held: list[_Held] = []
    answers: list[list[Int32s]] = []
    room = piece_records
    for columns in chunks:
        size = columns[0].size
        parts: list[Int32s] = []
        answers.append(parts)
        done = 0
        while size - done >= room:
            held.append((tuple(column[done : done + room] for column in columns), parts))
            _route_held(held, route_piece)
            done += room
            room = piece_records
        if done < size:
            held.append((tuple(column[done:] for column in columns), parts))
            room -= size - done
        if not held:
            yield from map(_joined, answers)
            answers.clear()
        elif done:
            yield from map(_joined, answers[:-1])
            del answers[:-1]
    _route_held(held, route_piece)
    yield from map(_joined, answers)


def _route_held(held: list[_Held], route_piece: RoutePiece) -> None:
    if not held:
        return
    by_column = zip(*(columns for columns, _ in held), strict=True)
    routes = np.empty(sum(columns[0].size for columns, _ in held), np.int32)
    route_piece(*map(np.concatenate, by_column), routes)
    start = 0
    for columns, parts in held:
        parts.append(routes[start : start + columns[0].size])
        start += columns[0].size
    held.clear()


def _joined(parts: list[Int32s]) -> Int32s:
    """The routes of a chunk; those of one piece are not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate([_NO_ROUTES, *parts])
