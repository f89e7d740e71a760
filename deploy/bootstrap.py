"""Set up the checkout: virtual environment, pinned packages, a JRE if need be, jars.

`make` runs this first. Standard library only, Python 3.11 or later. It does nothing when
its stamp is there, and what an interrupted run left behind is completed or replaced.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "deploy" / "locks"
STAMP = VENV / "unskew-setup"
_PYTHON_MIN = (3, 11)


def main() -> int:
    """Set up if anything changed since the last time; the exit code."""
    if sys.version_info < _PYTHON_MIN:
        return _fail(f"Python 3.11 or later is needed (this is {sys.version.split()[0]})")
    (ROOT / ".cache").mkdir(exist_ok=True)
    with (ROOT / ".cache" / "setup.lock").open("w") as lock:
        _wait_for(lock)
        state = _state()
        if STAMP.exists() and STAMP.read_text() == state:
            return 0
        try:
            _set_up()
        except subprocess.CalledProcessError as error:
            return _fail(f"this step failed: {' '.join(map(str, error.cmd))}")
        STAMP.write_text(state)
        _say("done")
    return 0


def _wait_for(lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say("another set-up of this checkout is running; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _set_up() -> None:
    STAMP.unlink(missing_ok=True)
    if not _works(PYTHON):
        shutil.rmtree(VENV, ignore_errors=True)
        _say(f"virtual environment .venv, Python {sys.version.split()[0]}")
        _make_environment()
    # Building from source (pyspark comes as sources) uses pinned tools too, hence two steps.
    _install("build tools", "--require-hashes", "-r", str(LOCKS / "build.txt"))
    _install(
        "packages, some 500 MB with Spark",
        "--require-hashes",
        "--no-build-isolation",
        "-r",
        str(LOCKS / "dev.txt"),
    )
    if _needs_jre():
        _install("a JRE, as there is no Java 17", "--require-hashes", "-r", str(LOCKS / "jre.txt"))
    _install("unskew itself", "--no-build-isolation", "--no-deps", "--editable", str(ROOT))
    subprocess.run(  # the paths that it prints are of no interest here, its progress is
        [str(PYTHON), "-m", "unskew", "jars"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL
    )


def _make_environment() -> None:
    """Make `.venv`. Python's own module is interrupted with a trace and leaves files behind."""
    with tempfile.TemporaryDirectory(
        prefix="setup-", dir=ROOT / ".cache", ignore_cleanup_errors=True
    ) as folder:
        done = subprocess.run(
            [sys.executable, "-m", "venv", str(VENV)],
            check=False,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    if done.returncode != 0:
        sys.stderr.buffer.write(done.stdout)
        done.check_returncode()


def _install(what: str, *arguments: str) -> None:
    _say(what)
    # pip's own bars on a terminal; elsewhere a line a package, so that a log shows it is alive.
    quiet = () if sys.stderr.isatty() else ("--progress-bar", "off")
    _run(PYTHON, "-m", "pip", "install", "--disable-pip-version-check", *quiet, *arguments)


def _run(*command: object) -> None:
    words = [str(word) for word in command]
    # The summary of a set-up is not what `make test` is asked for: all progress goes to stderr.
    subprocess.run(words, check=True, cwd=ROOT, stdout=sys.stderr.fileno())


def _works(python: Path) -> bool:
    probe = [
        str(python),
        "-c",
        f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})",
    ]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _needs_jre() -> bool:
    sys.path.insert(0, str(ROOT))
    from unskew.jobs.local.java import find_system_java  # noqa: PLC0415 - standard library only

    return find_system_java() is None


def _state() -> str:
    """A digest of all that the set-up depends on."""
    digest = hashlib.sha256(f"{sys.version}{_needs_jre()}{ROOT}".encode())
    for path in [ROOT / "pyproject.toml", *sorted(LOCKS.glob("*.txt"))]:
        digest.update(path.read_bytes())
    for path in (ROOT / "deploy" / "ivy.xml", ROOT / "deploy" / "jars.sha256"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _say(text: str) -> None:
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def _fail(text: str) -> int:
    print(f"set-up: {text}; fix this and run the same command again", file=sys.stderr)
    return 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nset-up: interrupted; run the same command again to continue", file=sys.stderr)
        sys.exit(130)
