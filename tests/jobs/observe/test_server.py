import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from unskew.config.errors import ExternalError
from unskew.config.models.metrics import BasicAuth, Metrics, Tls
from unskew.config.types.secrets import Secret
from unskew.jobs.local.child_processes import find_free_ports
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.web.connections import REQUEST_BYTES_MAX, REQUEST_SECONDS
from unskew.jobs.observe.web.server import MetricsServer


@contextmanager
def serving(settings: Metrics, health: Health | None = None) -> Iterator[MetricsServer]:
    known = health or Health(10.0)
    with MetricsServer(settings, Board("q", known), known) as server:
        yield server


def get(
    url: str, headers: dict[str, str] | None = None, tls: ssl.SSLContext | None = None
) -> tuple[int, str, str]:
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=20, context=tls) as answer:  # noqa: S310
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def at(server: MetricsServer, path: str) -> str:
    return server.url.removesuffix("/metrics") + path


def test_any_free_port_of_loopback_is_taken() -> None:
    with serving(Metrics()) as first, serving(Metrics(port=0)) as second:
        assert first.url.startswith("http://127.0.0.1:")
        assert first.url != second.url
        code, kind, text = get(first.url)
        assert (code, kind.split(";")[0]) == (200, "text/plain")
        assert 'unskew_query_up{query="q"} 0.0' in text


def test_prometheus_gets_the_format_that_it_asks_for() -> None:
    with serving(Metrics()) as server:
        _, kind, text = get(server.url, {"Accept": "application/openmetrics-text; version=1.0.0"})
        assert kind.startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")


def test_probes_are_red_when_the_query_failed_or_stalled() -> None:
    now = [0.0]
    health = Health(10.0, lambda: now[0])
    with serving(Metrics(), health) as server:

        def probes() -> list[tuple[int, str]]:
            answers = [get(at(server, path)) for path in ("/healthz", "/readyz")]
            return [(code, text.strip()) for code, _, text in answers]

        assert probes() == [(200, "starting"), (503, "starting")]
        health.reset_stall_timer()
        assert probes() == [(200, "running"), (200, "running")]
        now[0] = 60.0
        assert probes() == [(503, "stalled"), (503, "stalled")]
        health.on_state_changed("stopping")
        assert probes() == [(200, "stopping"), (503, "stopping")]
        health.on_state_changed("failed")
        assert probes() == [(503, "failed"), (503, "failed")]
        assert get(at(server, "/other"))[0] == 404


def test_a_password_is_asked_for_metrics_but_not_by_probes() -> None:
    auth = BasicAuth(user="prometheus", password=Secret("s3cret"))
    with serving(Metrics(basic_auth=auth)) as server:
        right = {"Authorization": "Basic " + b64encode(b"prometheus:s3cret").decode()}
        wrong = {"Authorization": "Basic " + b64encode(b"prometheus:secret").decode()}
        assert get(server.url)[0] == 401
        assert get(server.url, wrong)[0] == 401
        assert get(server.url, right)[0] == 200
        assert get(at(server, "/healthz"))[0] == 200


def test_metrics_over_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    tls = Tls(certificate_file=str(certificate), key_file=str(key))
    with serving(Metrics(tls=tls)) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(certificate))
        assert get(server.url, tls=trusting)[0] == 200
        # Clients without TLS, or that send nothing, delay no other.
        port = int(server.url.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            with socket.create_connection(("127.0.0.1", port)):
                assert get(server.url, tls=trusting)[0] == 200


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    missing = Tls(certificate_file=str(tmp_path / "no.pem"), key_file=str(tmp_path / "no.key"))
    with pytest.raises(ExternalError, match=r"metrics.tls: .*no.pem .*No such file"):
        MetricsServer(Metrics(tls=missing), Board("q", Health(1.0)), Health(1.0))


def test_a_taken_port_is_one_line_with_advice() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(ExternalError, match=f"127.0.0.1:{port}.*in use; choose another port"),
            serving(Metrics(port=port)),
        ):
            pass


def test_a_fixed_port_is_free_again_afterwards() -> None:
    (port,) = find_free_ports(1)
    for _ in range(2):
        with serving(Metrics(port=port)) as server:
            assert get(server.url)[0] == 200


SLOW = 64

FLOOD = """
import socket, sys, threading
address, path = ("127.0.0.1", int(sys.argv[1])), sys.argv[2]
def ask():
    while True:
        try:
            with socket.create_connection(address, timeout=5) as client:
                client.sendall(f"GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n".encode())
                while client.recv(65536):
                    pass
        except OSError:
            pass
for _ in range(SLOW):
    threading.Thread(target=ask, daemon=True).start()
print("asking", flush=True)
input()
"""


@contextmanager
def slow_clients(port: int) -> Iterator[None]:
    """Connections that send a byte of a request four times a second, and come again when closed."""
    done = threading.Event()

    def trickle() -> None:
        while not done.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
                for byte in b"GET /metrics HTTP/1.1\r\nX-Slow: " + b"x" * 10_000:
                    if done.wait(0.25):
                        break
                    client.sendall(bytes([byte]))

    threads = [threading.Thread(target=trickle) for _ in range(SLOW)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_slow_clients_leave_room_for_probes_and_scrapes() -> None:
    with serving(Metrics()) as server, slow_clients(server.port):
        time.sleep(0.5)
        for _ in range(10):
            begun = time.monotonic()
            assert get(at(server, "/healthz"))[0] == 200
            assert get(server.url)[0] == 200
            assert time.monotonic() - begun < 4


def test_a_connection_ends_at_its_deadline_whatever_it_sends() -> None:
    with serving(Metrics()) as server:
        begun = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.settimeout(0.2)
            while time.monotonic() - begun < 20:
                try:
                    client.sendall(b"x")
                    if client.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
        assert REQUEST_SECONDS - 1 < time.monotonic() - begun < REQUEST_SECONDS + 4


@pytest.mark.parametrize("flooded", ["/metrics", pytest.param("/healthz", marks=pytest.mark.slow)])
def test_a_flood_costs_the_job_a_share_of_a_core_and_probes_are_answered(flooded: str) -> None:
    command = [sys.executable, "-c", FLOOD.replace("SLOW", str(SLOW))]
    with serving(Metrics()) as server:
        with subprocess.Popen(
            [*command, str(server.port), flooded], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as flood:
            try:
                assert flood.stdout is not None
                assert flood.stdout.readline() == b"asking\n"
                wall, busy = time.monotonic(), time.process_time()
                for _ in range(4):
                    assert get(at(server, "/healthz"))[0] == 200
                    time.sleep(0.5)
                busy = time.process_time() - busy
                wall = time.monotonic() - wall
            finally:
                flood.kill()
        assert busy / wall < 0.5


def test_a_request_that_never_ends_is_cut_off() -> None:
    with (
        serving(Metrics()) as server,
        socket.create_connection(("127.0.0.1", server.port)) as client,
    ):
        with suppress(OSError):
            client.sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * REQUEST_BYTES_MAX + b"\r\n")
        begun = time.monotonic()
        with suppress(ConnectionError):
            assert client.recv(1) == b""
        assert time.monotonic() - begun < REQUEST_SECONDS - 1


@pytest.fixture(scope="module")
def named() -> Iterator[MetricsServer]:
    """A server that knows a name of its own."""
    with serving(Metrics(host_names=["metrics.example.org"])) as server:
        yield server


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:9095", 200),
        ("[::1]", 200),
        ("localhost", 200),
        ("word-count:9095", 200),
        ("metrics.example.org", 200),
        ("METRICS.example.org.:80", 200),
        (socket.gethostname(), 200),
        ("evil.example.org", 421),
        ("127.0.0.1.evil.org", 421),
        ("localhost.evil.org:9095", 421),
    ],
)
def test_a_page_that_was_led_here_by_its_own_name_reads_nothing(
    named: MetricsServer, host: str, code: int
) -> None:
    assert get(named.url, {"Host": host})[0] == code
    assert get(at(named, "/healthz"), {"Host": host})[0] == 200
