"""What a running JVM says of its memory, asked as `jcmd` asks, which no JRE brings."""

import re
import signal
import socket
import time
from pathlib import Path

import psutil

_START_SECONDS = 60.0
# Where a JVM on Linux looks, whatever its own folder for temporary files is.
_FOLDER = Path("/tmp")  # noqa: S108 - its name is the JVM's
_USED = re.compile(r"(?:generation|heap)\s+total \d+K, used (\d+)K")


def read_live_heap(jvm: psutil.Process) -> int:
    """Collect a JVM's garbage; then read the bytes of the objects that it holds."""
    ask_jvm(jvm, "GC.run")
    return sum(int(used) << 10 for used in _USED.findall(ask_jvm(jvm, "GC.heap_info")))


def ask_jvm(jvm: psutil.Process, command: str) -> str:
    """Let a JVM carry out a diagnostic command; its answer."""
    words = ["1", "jcmd", command, "", ""]
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(_open_socket(jvm)))
        asked.sendall(b"".join(word.encode() + b"\0" for word in words))
        with asked.makefile("r") as answer:
            status, text = answer.readline().strip(), answer.read()
    assert status == "0", f"{command}: {status}: {text}"
    return text


def _open_socket(jvm: psutil.Process) -> Path:
    """The socket on which a JVM of ours takes commands; it makes one when it is first asked."""
    path, wish = _FOLDER / f".java_pid{jvm.pid}", _FOLDER / f".attach_pid{jvm.pid}"
    if path.exists():
        return path
    deadline = time.monotonic() + _START_SECONDS
    wish.touch()
    try:
        # Without that file it would print its threads.
        jvm.send_signal(signal.SIGQUIT)
        while not path.exists():
            assert time.monotonic() < deadline, f"JVM {jvm.pid} does not answer"
            time.sleep(0.05)
    finally:
        wish.unlink()
    return path
