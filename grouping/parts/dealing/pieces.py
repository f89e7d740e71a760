"""A share in pieces: chunks are held until there are enough records to route at once."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from unskew.grouping.arguments import checked_array
from unskew.grouping.base import Chunk, Int32s, UInt64s

RoutePiece = Callable[[UInt64s, Int32s], None]
_Part = tuple[UInt64s, Int32s]


def route_pieces(
    chunks: Iterable[Chunk], piece_records: int, route_piece: RoutePiece
) -> Iterator[Int32s]:
    """Hold up to `piece_records`, route them as one, and answer in the chunks' own shapes.

    How a share is cut into chunks changes no piece.
    """
    held: list[_Part] = []
    answers: list[Int32s] = []
    room = piece_records
    for given, _ in chunks:
        keys = checked_array("keys", given, np.uint64)
        out = np.empty(keys.size, np.int32)
        answers.append(out)
        done = 0
        while keys.size - done >= room:
            held.append((keys[done : done + room], out[done : done + room]))
            _route_held(held, route_piece)
            done += room
            room = piece_records
        if done < keys.size:
            held.append((keys[done:], out[done:]))
            room -= keys.size - done
        if not held:
            yield from answers
            answers.clear()
        elif done:
            yield from answers[:-1]
            del answers[:-1]
    _route_held(held, route_piece)
    yield from answers


def _route_held(held: list[_Part], route_piece: RoutePiece) -> None:
    if not held:
        return
    keys = np.concatenate([keys for keys, _ in held])
    routes = np.empty(keys.size, np.int32)
    route_piece(keys, routes)
    start = 0
    for _, out in held:
        out[:] = routes[start : start + out.size]
        start += out.size
    held.clear()
