"""What an operator opens for a key, kept in the worker process across tasks and batches.

A model, a profile or a connection costs much, once a key. A Python worker of Spark lives on from
task to task, so what one task opened serves the next that meets the key in the same process. Spark
gives a worker other partitions in each batch: a cache that holds the keys of one partition only
will often miss.
"""

import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from unskew.config.models.operator import OPEN_KEYS

if TYPE_CHECKING:
    from unskew.config.models.operator import OperatorOptions
    from unskew.jobs.operators.base import Operator


@dataclass
class OpenCounts:
    """How often a task asked for what is open, how often it had to open it, and for how long."""

    hits: int = 0
    misses: int = 0
    seconds: float = 0.0


@dataclass
class OpenedKeys:
    """Keeps what one operator has open in this process: for at most `limit` keys, the last used."""

    operator: "type[Operator]"
    options: "OperatorOptions"
    limit: int = OPEN_KEYS
    counts: OpenCounts = field(default_factory=OpenCounts)
    _open: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _failed: dict[Hashable, tuple[Exception, TracebackType | None]] = field(default_factory=dict)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._open

    def begin_task(self, limit: int) -> None:
        """Reset the counts, and let keys that could not be opened be tried again."""
        self.limit, self.counts = limit, OpenCounts()
        self._failed.clear()
        self._close_beyond(limit)

    def get(self, key: Hashable, open_key: Callable[[Any], Any]) -> Any:
        """Get what is open for the key; open it if it is not.

        What raised raises again without another attempt: the rows of a task are tried in ever
        smaller parts when one of them fails, and a key may have many rows.
        """
        if key in self._open:
            self.counts.hits += 1
            self._open.move_to_end(key)
            return self._open[key]
        if key in self._failed:
            error, trace = self._failed[key]
            raise error.with_traceback(trace)
        return self._open_new(key, open_key)

    def _open_new(self, key: Hashable, open_key: Callable[[Any], Any]) -> Any:
        self.counts.misses += 1
        started = time.perf_counter()
        try:
            # First, so that there are never more than `limit`.
            self._close_beyond(self.limit - 1)
            opened = open_key(key)
        except MemoryError:
            raise
        except Exception as error:
            self._failed[key] = error, error.__traceback__
            raise
        finally:
            self.counts.seconds += time.perf_counter() - started
        self._open[key] = opened
        return opened

    def _close_beyond(self, limit: int) -> None:
        while len(self._open) > limit:
            _, opened = self._open.popitem(last=False)
            try:
                if close := getattr(opened, "close", None):
                    close()
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - whatever a user's code raises
                # It is given up in any case, and the key that needs its room is another: the
                # worker's log says what was raised.
                traceback.print_exc()


_OF_THIS_PROCESS: list[OpenedKeys] = []


def get_opened_keys(operator: "Operator") -> OpenedKeys:
    """Get what this process has open for an operator of this class with these options."""
    for opened in _OF_THIS_PROCESS:
        if opened.operator is type(operator) and opened.options == operator.options:
            return opened
    opened = OpenedKeys(type(operator), operator.options)
    _OF_THIS_PROCESS.append(opened)
    return opened


def begin_task(operator: "Operator", limit: int) -> OpenCounts:
    """Begin a task that keeps up to `limit` keys open; what it will have counted."""
    if not operator.defines_open():
        return OpenCounts()
    opened = get_opened_keys(operator)
    opened.begin_task(limit)
    return opened.counts
