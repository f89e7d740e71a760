"""An HTTP server that no client can hold, however many connections it opens.

A connection has two stretches: until its request is here, and until its answer is sent. Each has a
deadline for the whole of it, so a byte now and then gains nothing. Connections in the first stretch
are bounded: one too many closes the oldest, so a request that comes at once, as that of a probe, is
always read. The second stretch is bounded too, but for probes: their answers are a few bytes, which
wait for no client. Connections are accepted at a bounded rate, which bounds the cost of a flood.
"""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer
from threading import Lock
from typing import IO, Any

REQUEST_SECONDS = 5.0
ANSWER_SECONDS = 10.0
REQUESTS_MAX = 32
ANSWERS_MAX = 8
REQUEST_BYTES_MAX = 16 << 10
ACCEPTED_PER_SECOND = 200
_ACCEPTED_AT_ONCE = 50


class BoundedServer(ThreadingHTTPServer):
    """A server with a thread a connection, and bounds for all of them."""

    daemon_threads = True
    # How many connections may wait to be accepted; the kernel drops those beyond.
    request_queue_size = 128
    tls: ssl.SSLContext | None = None

    def __init__(self, address: Any, handler: Any, family: int) -> None:
        self.address_family = family
        self._requests = _Stretch(REQUESTS_MAX, REQUEST_SECONDS)
        self._answers = _Stretch(ANSWERS_MAX, ANSWER_SECONDS)
        self._next_accept = 0.0
        super().__init__(address, handler)

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; its TLS handshake is made later, where it delays no other."""
        self._keep_rate()
        connection, address = super().get_request()
        connection.settimeout(REQUEST_SECONDS)
        if self.tls is not None:
            connection = self.tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread."""
        self._requests.enter_in_any_case(request)
        super().process_request(request, client_address)

    @contextmanager
    def answering(self, connection: socket.socket) -> Iterator[bool]:
        """The second stretch of a connection; False if there are too many."""
        self._requests.leave(connection)
        try:
            yield self._answers.enter(connection)
        finally:
            self._answers.leave(connection)

    def service_actions(self) -> None:
        """Close what is over its deadline: called after each connection, and twice a second."""
        self._requests.close_overdue()
        self._answers.close_overdue()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._requests.leave(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log clients that close their connection, or send what is no request."""

    def _keep_rate(self) -> None:
        now = time.monotonic()
        earliest = now - _ACCEPTED_AT_ONCE / ACCEPTED_PER_SECOND
        self._next_accept = max(self._next_accept, earliest) + 1 / ACCEPTED_PER_SECOND
        if self._next_accept > now:
            time.sleep(self._next_accept - now)


class _Stretch:
    """The connections that are in one stretch, the oldest first, each with its deadline."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._deadlines: dict[socket.socket, float] = {}
        self._lock = Lock()

    def enter(self, connection: socket.socket) -> bool:
        """Let a connection in if there is room."""
        with self._lock:
            if len(self._deadlines) >= self._most:
                return False
            self._deadlines[connection] = time.monotonic() + self._seconds
        return True

    def enter_in_any_case(self, connection: socket.socket) -> None:
        """Let a connection in; where there is no room, the oldest one is closed."""
        with self._lock:
            if len(self._deadlines) >= self._most:
                self._close(next(iter(self._deadlines)))
            self._deadlines[connection] = time.monotonic() + self._seconds

    def leave(self, connection: socket.socket) -> None:
        """A connection is done here, or was closed."""
        with self._lock:
            self._deadlines.pop(connection, None)

    def close_overdue(self) -> None:
        """Close the connections whose deadline is over."""
        now = time.monotonic()
        with self._lock:
            for connection in [each for each, end in self._deadlines.items() if end <= now]:
                self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        del self._deadlines[connection]
        # Not TLS's own: that would take the keys away from the thread that is reading.
        with suppress(OSError):
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


class RequestLines:
    """The lines of a request, which are bounded all together; the handler reads from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = REQUEST_BYTES_MAX

    def readline(self, limit: int = -1) -> bytes:
        """Read a line, of `limit` bytes at most."""
        most = self._left + 1 if limit < 0 else min(limit, self._left + 1)
        line = self._file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("the request is too long")
        return line

    def close(self) -> None:
        """Close the file."""
        self._file.close()
