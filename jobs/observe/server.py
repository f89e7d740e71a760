"""The HTTP server of a job: `/metrics`, `/healthz`, `/readyz`, and `/`, the live page.

It runs in threads of its own and only reads the board and the page, so no client can slow down the
job: a connection is closed after ten seconds, and the number of connections is bounded.
"""

import hmac
import socket
import ssl
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from types import TracebackType
from typing import Any, Self

from prometheus_client.exposition import choose_encoder

from unskew.config.errors import ExternalError
from unskew.config.models.metrics import BasicAuth, Metrics, Tls
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.page.page import DATA, DOCUMENT, HEADERS, LivePage

CONNECTION_SECONDS = 10.0
CONNECTIONS_MAX = 16


class MetricsServer:
    """The server, from its construction to `stop`."""

    def __init__(
        self, settings: Metrics, board: Board, health: Health, page: LivePage | None = None
    ) -> None:
        self._settings = settings
        registry = board.registry()

        class Handler(_Handler):
            """The handler of this server's requests."""

            served = (registry, health, page)
            credentials = _authorization(settings.basic_auth)

        tls = _tls_context(settings.tls) if settings.tls is not None else None
        self._server = _listen(settings, Handler)
        self._server.tls = tls
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the metrics."""
        return f"{self.page_url}metrics"

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def page_url(self) -> str:
        """The address of the live page."""
        scheme = "https" if self._settings.tls else "http"
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        return f"{scheme}://{host}:{self._server.server_address[1]}/"

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _Handler(BaseHTTPRequestHandler):
    timeout = CONNECTION_SECONDS
    served: tuple[Any, Health, LivePage | None]
    credentials: bytes | None
    server_version = "unskew"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a GET request."""
        registry, health, page = self.served
        path, _, query = self.path.partition("?")
        if path == "/healthz":
            self._answer_probe(health.alive, health.state)
        elif path == "/readyz":
            self._answer_probe(health.ready, health.state)
        elif path not in {"/metrics", *(("/", DATA) if page else ())}:
            self._answer(404, "text/plain", b"there are /, /metrics, /healthz and /readyz\n")
        elif not self._may_read():
            self._answer(401, "text/plain", b"", ("WWW-Authenticate", 'Basic realm="unskew"'))
        elif path == "/":
            self._answer(200, "text/html; charset=utf-8", DOCUMENT, *HEADERS)
        elif path == DATA and page is not None:
            self._answer(200, "application/json", page.data(query), *HEADERS)
        else:
            encode, content_type = choose_encoder(self.headers.get("Accept") or "")
            self._answer(200, content_type, encode(registry))

    def _answer_probe(self, healthy: bool, state: str) -> None:
        self._answer(200 if healthy else 503, "text/plain", f"{state}\n".encode())

    def _may_read(self) -> bool:
        if self.credentials is None:
            return True
        given = (self.headers.get("Authorization") or "").encode()
        return hmac.compare_digest(given, self.credentials)

    def _answer(self, code: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Do not log requests."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tls: ssl.SSLContext | None = None

    def __init__(self, address: Any, handler: type[_Handler], family: int) -> None:
        self.address_family = family
        self._free_connections = BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread, or close the connection if there are too many."""
        if self._free_connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection; its TLS handshake is made here, where it delays no other."""
        try:
            request.settimeout(CONNECTION_SECONDS)
            if self.tls is not None:
                request = self.tls.wrap_socket(request, server_side=True)
            super().process_request_thread(request, client_address)
        except OSError:  # the client closed the connection, or does not speak TLS
            self.shutdown_request(request)
        finally:
            self._free_connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log clients that close their connection."""


def _listen(settings: Metrics, handler: type[_Handler]) -> _Server:
    port = 0 if settings.port == "auto" else settings.port
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return _Server(address, handler, family)
    except OSError as error:
        advice = "choose another port, or auto" if port else "change metrics.host"
        reason = error.strerror or str(error)
        raise ExternalError(
            f"metrics: {settings.host}:{settings.port}: cannot be listened on: {reason}; {advice}"
        ) from error


def _tls_context(files: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate_file, files.key_file)
    except OSError as error:  # ssl's errors are OSErrors too
        where = f"{files.certificate_file} with {files.key_file}"
        reason = error.strerror or error
        raise ExternalError(f"metrics.tls: {where}: cannot be used: {reason}") from error
    return context


def _authorization(auth: BasicAuth | None) -> bytes | None:
    if auth is None:
        return None
    return b"Basic " + b64encode(f"{auth.user}:{auth.password.get_secret_value()}".encode())
