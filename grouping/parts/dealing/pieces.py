"""A share in pieces: chunks are held until there are enough records to route at once."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s

Columns = tuple[NDArray[Any], ...]
RoutePiece = Callable[..., None]
"""Gets the columns of a piece, and the routes of its records to fill in."""


def route_pieces(
    chunks: Iterable[Columns], piece_records: int, route_piece: RoutePiece
) -> Iterator[Int32s]:
    """Hold up to `piece_records`, route them as one, and answer in the chunks' own shapes.

    The first column has an entry a record. How a share is cut into chunks changes no piece.
    """
    held: list[Columns] = []
    answers: list[Int32s] = []
    room = piece_records
    for columns in chunks:
        size = columns[0].size
        out = np.empty(size, np.int32)
        answers.append(out)
        done = 0
        while size - done >= room:
            held.append(tuple(column[done : done + room] for column in (*columns, out)))
            _route_held(held, route_piece)
            done += room
            room = piece_records
        if done < size:
            held.append(tuple(column[done:] for column in (*columns, out)))
            room -= size - done
        if not held:
            yield from answers
            answers.clear()
        elif done:
            yield from answers[:-1]
            del answers[:-1]
    _route_held(held, route_piece)
    yield from answers


def _route_held(held: list[Columns], route_piece: RoutePiece) -> None:
    if not held:
        return
    *columns, outs = zip(*held, strict=True)
    routes = np.empty(sum(out.size for out in outs), np.int32)
    route_piece(*map(np.concatenate, columns), routes)
    start = 0
    for out in outs:
        out[:] = routes[start : start + out.size]
        start += out.size
    held.clear()
