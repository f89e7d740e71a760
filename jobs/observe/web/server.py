"""The HTTP server of a job: `/metrics`, `/healthz`, `/readyz`, and `/`, the live page.

It runs in threads of its own and only reads the board and the page; `connections` bounds what its
clients can cost. The metrics are made into text once for each change of their values.
"""

import hmac
import socket
import ssl
from base64 import b64encode
from http.server import BaseHTTPRequestHandler
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from unskew.config.errors import ExternalError
from unskew.config.models.metrics import BasicAuth, Metrics, Tls
from unskew.jobs.local.resources import find_resource
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.page.page import DATA, DOCUMENT, HEADERS, LivePage
from unskew.jobs.observe.web.connections import REQUEST_SECONDS, BoundedServer, RequestLines
from unskew.jobs.observe.web.host_names import is_own

_TEXTS_MAX = 4
# How often the server's thread looks whether it is to stop.
_STOP_CHECK_SECONDS = 0.1
DOCS = ("glossary.md", "groupings.md", "metrics.md", "operating.md")
"""The pages of documentation that the live page links to."""
_DOCS_PATH = "/docs/"


class MetricsServer:
    """The server, from its construction to `stop`."""

    def __init__(
        self, settings: Metrics, board: Board, health: Health, page: LivePage | None = None
    ) -> None:
        self._settings = settings
        metrics = _Metrics(board)

        class Handler(_Handler):
            """The handler of this server's requests."""

            served = (metrics, health, page)
            credentials = _encode_authorization(settings.basic_auth)
            host_names = (settings.host, *settings.host_names)

        tls = _make_tls_context(settings.tls) if settings.tls is not None else None
        self._server = _listen(settings, Handler)
        self._server.tls = tls
        self._thread = Thread(
            target=self._server.serve_forever,
            args=(_STOP_CHECK_SECONDS,),
            name="metrics",
            daemon=True,
        )
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


class _Metrics:
    """The board's metrics as text, kept until a value changes."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._registry: CollectorRegistry = board.make_registry()
        self._made_of: tuple[object, str] = (None, "")
        self._texts: dict[str, bytes] = {}
        self._lock = Lock()

    def write_text(self, accept: str) -> tuple[str, bytes]:
        """Write the metrics in a content type that the client takes."""
        encode, content_type = choose_encoder(accept)
        with self._lock:
            values, state = self._board.read_values()
            same = values is self._made_of[0] and state == self._made_of[1]
            if not same or len(self._texts) > _TEXTS_MAX:
                self._made_of, self._texts = (values, state), {}
            if content_type not in self._texts:
                self._texts[content_type] = encode(self._registry)
            return content_type, self._texts[content_type]


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS
    server: BoundedServer
    served: tuple[_Metrics, Health, LivePage | None]
    credentials: bytes | None
    host_names: tuple[str, ...]
    server_version = "unskew"
    sys_version = ""

    def setup(self) -> None:
        """Read a bounded request only."""
        super().setup()
        self.rfile: Any = RequestLines(self.rfile)

    def do_GET(self) -> None:
        """Answer a GET request."""
        path, _, query = self.path.partition("?")
        health = self.served[1]
        with self.server.answering(self.connection) as has_room:
            if path == "/healthz":
                self._answer_probe(health.alive, health.state)
            elif path == "/readyz":
                self._answer_probe(health.ready, health.state)
            elif not has_room:
                self._answer(503, "text/plain", b"too many requests\n", ("Retry-After", "1"))
            elif not self._is_own_host():
                self._answer(421, "text/plain", b"add this name to metrics.host_names\n")
            else:
                self._answer_reader(path, query)

    def _answer_reader(self, path: str, query: str) -> None:
        """Answer a request for the metrics, or for the page."""
        metrics, _, page = self.served
        document = path.removeprefix(_DOCS_PATH) if path.startswith(_DOCS_PATH) else ""
        if document not in DOCS and path not in {"/metrics", *(("/", DATA) if page else ())}:
            self._answer(404, "text/plain", b"there are /, /metrics, /healthz and /readyz\n")
        elif not self._may_read():
            self._answer(401, "text/plain", b"", ("WWW-Authenticate", 'Basic realm="unskew"'))
        elif path == "/":
            self._answer(200, "text/html; charset=utf-8", DOCUMENT, *HEADERS)
        elif document:
            text = find_resource(document, "docs").read_bytes()
            self._answer(200, "text/plain; charset=utf-8", text, *HEADERS)
        elif path == DATA and page is not None:
            self._answer(200, "application/json", page.data(query), *HEADERS)
        else:
            self._answer(200, *metrics.write_text(self.headers.get("Accept") or ""))

    def _is_own_host(self) -> bool:
        return all(is_own(host, self.host_names) for host in self.headers.get_all("Host", []))

    def _answer_probe(self, healthy: bool, state: str) -> None:
        self._answer(200 if healthy else 503, "text/plain", f"{state}\n".encode())

    def _may_read(self) -> bool:
        if self.credentials is None:
            return True
        header = (self.headers.get("Authorization") or "").encode()
        return hmac.compare_digest(header, self.credentials)

    def _answer(self, code: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(code)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Do not log requests."""


def _listen(settings: Metrics, handler: type[_Handler]) -> BoundedServer:
    port = 0 if settings.port == "auto" else settings.port
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return BoundedServer(address, handler, family)
    except OSError as error:
        advice = "choose another port, or auto" if port else "change metrics.host"
        reason = error.strerror or str(error)
        raise ExternalError(
            f"metrics: {settings.host}:{settings.port}: cannot be listened on: {reason}; {advice}"
        ) from error


def _make_tls_context(files: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate_file, files.key_file)
    except OSError as error:  # ssl's errors are OSErrors too
        where = f"{files.certificate_file} with {files.key_file}"
        reason = error.strerror or error
        raise ExternalError(f"metrics.tls: {where}: cannot be used: {reason}") from error
    return context


def _encode_authorization(auth: BasicAuth | None) -> bytes | None:
    if auth is None:
        return None
    return b"Basic " + b64encode(f"{auth.user}:{auth.password.get_secret_value()}".encode())
