"""Writing a stream at its rate: record i is due i / rate seconds after the start."""

import time

from unskew.config.errors import ExternalError
from unskew.jobs.generator.oracle import Oracle
from unskew.jobs.generator.outputs import Output
from unskew.jobs.generator.progress import Progress
from unskew.jobs.generator.stream import Chunk, Stream
from unskew.jobs.local.signals import Stop

_TICK_SECONDS = 0.01
_LOOK_SECONDS = 0.2
_PIECE_RECORDS = 4096


class Writer:
    """Writes one stream to one output until it ends or is stopped."""

    def __init__(
        self, stream: Stream, output: Output, oracle: Oracle | None, progress: Progress, stop: Stop
    ) -> None:
        self._stream = stream
        self._output = output
        self._oracle = oracle
        self._progress = progress
        self._stop = stop
        self._sent = 0
        self._started = 0.0

    def run(self, *, paced: bool) -> None:
        """Write all records, at the stream's rate or as fast as they can be written."""
        if self._oracle is not None:
            self._oracle.begin()
        self._started = time.monotonic()
        try:
            for chunk in self._stream.make_chunks():
                done = self._write(chunk, paced=paced)
                if self._oracle is not None:
                    self._oracle.add(chunk, 0, done)
                if self._stop.asked:
                    break
            if paced:
                # The time of the last record belongs to the stream too.
                self._wait(self._sent / self._stream.settings.rate)
            seconds = time.monotonic() - self._started
            self._output.close()
            if not paced:
                seconds = time.monotonic() - self._started
        except (ExternalError, KeyboardInterrupt):
            self._progress.clear()
            if self._oracle is not None:
                self._oracle.discard()
            raise
        if self._oracle is not None:
            self._oracle.write()
        self._progress.done(self._output.written, seconds)

    def _write(self, chunk: Chunk, *, paced: bool) -> int:
        """Write one chunk; return how many of its records were written, fewer if asked to stop."""
        size, done = len(chunk.values), 0
        if self._stream.settings.records is not None:
            size = min(size, self._stream.settings.records - self._sent)
        while done < size and not self._stop.asked:
            count = min(size - done, _PIECE_RECORDS)
            if paced:
                count = min(count, self._wait_until_due())
            if count:
                end = done + count
                self._output.write(chunk.values[done:end], chunk.times[done:end])
                self._sent, done = self._sent + count, end
            self._progress.show(self._sent)
        return done

    def _wait_until_due(self) -> int:
        """Count the records that are due now; if there are none, sleep briefly."""
        rate = self._stream.settings.rate
        now = time.monotonic() - self._started
        due = int(now * rate) + 1 - self._sent
        if due > 0 and due >= rate * _TICK_SECONDS:
            return due
        time.sleep(min(max(self._sent / rate - now, _TICK_SECONDS), _LOOK_SECONDS))
        return max(0, int((time.monotonic() - self._started) * rate) + 1 - self._sent)

    def _wait(self, moment: float) -> None:
        while not self._stop.asked:
            left = self._started + moment - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _LOOK_SECONDS))
