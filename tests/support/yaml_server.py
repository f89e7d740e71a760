"""The language server that editors use for YAML, driven as an editor drives it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "deploy" / "locks" / "editor"
_SETTINGS = {
    "yaml": {"validate": True, "completion": True, "schemaStore": {"enable": False}},
    "http": {},
    "[yaml]": {},
}


def install_server() -> Path:
    """The server's program, as the lock pins it; installed once."""
    lock = (LOCK / "package-lock.json").read_bytes()
    folder = ROOT / ".cache" / f"editor-{sha256(lock).hexdigest()[:12]}"
    program = folder / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(LOCK / name, folder)
        words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=180)
    return program


class YamlServer:
    """A running server."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._number = 0
        self._ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": _SETTINGS})

    def find_problems(self, file: Path) -> list[str]:
        """What it says of a file: `line: message` each, lines counted from 1."""
        self._open(file)
        while True:
            message = self._read()
            if message.get("method") != "textDocument/publishDiagnostics":
                continue
            if message["params"]["uri"] == file.as_uri():
                return [
                    f"{each['range']['start']['line'] + 1}: {each['message']}"
                    for each in message["params"]["diagnostics"]
                ]

    def complete(self, file: Path, line: int, column: int) -> list[str]:
        """What it would write at a place of a file that is open; counted from 0."""
        at = {"line": line, "character": column}
        document = {"uri": file.as_uri()}
        answer = self._ask("textDocument/completion", {"textDocument": document, "position": at})
        return [item["label"] for item in answer["items"]]

    def _open(self, file: Path) -> None:
        document = {"uri": file.as_uri(), "languageId": "yaml", "version": 1}
        self._tell("textDocument/didOpen", {"textDocument": {**document, "text": file.read_text()}})

    def _ask(self, method: str, params: Any) -> Any:
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        while (message := self._read()).get("id") != self._number or "method" in message:
            pass
        return message["result"]

    def _tell(self, method: str, params: Any) -> None:
        self._write({"method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        """The next message; what the server asks of its editor is answered."""
        out = self._process.stdout
        assert out is not None
        length = 0
        while line := out.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        assert length, "the server ended"
        message: dict[str, Any] = json.loads(out.read(length))
        if "method" in message and "id" in message:
            items = (message.get("params") or {}).get("items") or []
            result = [_SETTINGS.get(item.get("section")) for item in items] or None
            self._write({"id": message["id"], "result": result})
        return message


@contextmanager
def running_server(program: Path) -> Iterator[YamlServer]:
    """A server, which ends with the block."""
    words = ["node", str(program), "--stdio"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield YamlServer(process)
        finally:
            process.kill()
