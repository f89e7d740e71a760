"""Which of the project's functions a run enters, stretch by stretch, in the order of first calls.

A stretch begins at each entry of one of its root functions and ends when that returns; what is
called in between belongs to it. Every process of a run appends to a file of its own, and times of
first calls, from a clock that the processes of a machine share, put the files together.
"""

import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

_NOT_OURS = (".venv/", "docs/")
FOLDER = "UNSKEW_TRACE_FOLDER"
"""The environment variable that names the folder of the processes' files."""


@dataclass(frozen=True, order=True)
class Call:
    """A function by its file, relative to the checkout, and its qualified name."""

    file: str
    function: str


@dataclass
class _Thread(threading.local):
    """Of each thread, the frames by which stretches began, and those that are left out.

    Each with its stretch, and whether what it calls is left out.
    """

    open: list[tuple[FrameType, str, bool]] = field(default_factory=list)


class Tracer:
    """Appends each first call of a stretch to this process's file."""

    def __init__(
        self,
        root: Path,
        stretches: Mapping[Call, str],
        omitted: frozenset[Call] = frozenset(),
        passed_over: tuple[str, ...] = (),
    ) -> None:
        """Stretches by their root functions.

        omitted: functions that are left out with all that they call.
        passed_over: beginnings of the names of files that are left out; what these call is not.
        """
        self._root = f"{root}/"
        self._stretches = stretches
        self._omitted = omitted
        self._passed_over = passed_over
        self._folder = os.environ[FOLDER]
        self._thread = _Thread()
        self._seen: set[tuple[str, Call, bool]] = set()
        self._calls: dict[object, Call | None] = {}

    def start(self) -> None:
        """Trace this thread, and those that start from now on."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            call = self._call(frame)
            if call is not None:
                self._enter(frame, call)
        elif event == "return" and self._thread.open and self._thread.open[-1][0] is frame:
            self._thread.open.pop()

    def _call(self, frame: FrameType) -> Call | None:
        code = frame.f_code
        if code not in self._calls:
            path = os.path.realpath(code.co_filename)
            file = path.removeprefix(self._root)
            name = code.co_qualname.partition(".<locals>")[0]
            ours = file != path and not file.startswith(_NOT_OURS)
            # Angle brackets are the compiler's: a lambda, or a file that is none.
            written = "<" not in f"{name}{code.co_filename}"
            self._calls[code] = Call(file, name) if ours and written else None
        return self._calls[code]

    def _enter(self, frame: FrameType, call: Call) -> None:
        opened = self._thread.open
        if call in self._stretches and call not in self._omitted:
            opened.append((frame, self._stretches[call], False))
        elif call in self._omitted and opened:
            opened.append((frame, opened[-1][1], True))
        if not opened:
            return
        _, stretch, omitted = opened[-1]
        omitted = omitted or call.file.startswith(self._passed_over)
        if (stretch, call, omitted) not in self._seen:
            self._seen.add((stretch, call, omitted))
            words = (time.monotonic_ns(), stretch, call.file, call.function, int(omitted))
            line = "\t".join(map(str, words)) + "\n"
            with Path(self._folder, f"{os.getpid()}.trace").open("a") as file:
                file.write(line)


def read_calls(folder: Path, *, all_calls: bool = False) -> dict[str, list[Call]]:
    """The calls of each stretch, in the order of their first calls by any process.

    all_calls: also those that are left out.
    """
    first: dict[tuple[str, Call], int] = {}
    for trace in folder.glob("*.trace"):
        for line in trace.read_text().splitlines():
            at, stretch, file, function, omitted = line.split("\t")
            key = stretch, Call(file, function)
            if all_calls or omitted == "0":
                first[key] = min(int(at), first.get(key, int(at)))
    calls: dict[str, list[Call]] = {}
    for stretch, call in sorted(first, key=first.__getitem__):
        calls.setdefault(stretch, []).append(call)
    return calls
