"""A user's shell, in which the lines of a page are typed."""

import os
import signal
import subprocess
import sys
from pathlib import Path


class Shell:
    """A user's shell in a folder, the environment of the tests activated, no Java named."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        programs = Path(sys.executable).parent
        self._environment = {
            **{name: text for name, text in os.environ.items() if name != "JAVA_HOME"},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder / "installed"),
        }

    def type(self, line: str, entered: str = "") -> str:
        """What a command prints."""
        process = subprocess.Popen(
            ["/bin/sh", "-euc", line],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(entered, timeout=280)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # Python and its JVM too, which hold the pipes
            process.communicate()
            raise
        assert process.returncode == 0, f"{line}\n{out[-2000:]}\n{err[-8000:]}"
        return out

    def export(self, line: str) -> None:
        """What an `export NAME=...` says holds for all that is typed after it."""
        name = line.removeprefix("export ").partition("=")[0]
        self._environment[name] = self.type(f'{line}\nprintf %s "${name}"')
