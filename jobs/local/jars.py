"""The JVM artifacts of `deploy/ivy.xml`: fetched once with the Ivy that pyspark ships.

They live in the user's cache under a digest of the list, so two versions of Unskew do not meet.
Every use compares each jar with its committed SHA-256 (a tenth of a second for all): a damaged or
half-written cache is fetched again, never used.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import util
from pathlib import Path

from unskew.config.errors import ExternalError
from unskew.grouping.cache import cache_folder
from unskew.jobs.local.java import find_java, find_system_java
from unskew.jobs.local.java_truststore import write_truststore
from unskew.jobs.local.resources import find_resource

SETS = ("spark", "broker", "delta")
_ALWAYS = ("spark", "broker")
"""The sets that are fetched together, at the first use of any; another one when it is asked for."""
_PATTERN = "[conf]/[artifact]-[revision].[ext]"


def fetch_jars(name: str, progress: Callable[[str], None] | None = None) -> list[Path]:
    """Fetch the jars of one set if the cache does not have them; return their paths."""
    assert name in SETS
    folder = ensure(progress, (name,))
    return [folder / path for path in read_expected() if path.startswith(f"{name}/")]


def ensure(progress: Callable[[str], None] | None = None, wanted: Sequence[str] = _ALWAYS) -> Path:
    """The cache folder with every jar of the sets in it and verified."""
    say = progress or _say
    folder = cache_folder("jars") / _digest()
    sets = tuple(dict.fromkeys(_ALWAYS + tuple(wanted)))
    if not find_problems(folder, sets):
        return folder
    with _lock(say):
        for some in (_ALWAYS, *((name,) for name in sets if name not in _ALWAYS)):
            if find_problems(folder, some):  # another process may have fetched them meanwhile
                _fetch(folder, some, say)
    return folder


def read_expected(sets: Sequence[str] = SETS) -> dict[str, str]:
    """Read the committed list: path in the cache -> SHA-256."""
    lines = find_resource("jars.sha256").read_text().splitlines()
    listed = {path: digest for digest, path in (line.split(maxsplit=1) for line in lines)}
    return {path: digest for path, digest in listed.items() if path.partition("/")[0] in sets}


def find_problems(folder: Path, sets: Sequence[str] = SETS) -> list[str]:
    """List the missing or damaged jars of a folder, a line each."""
    problems = []
    for path, digest in read_expected(sets).items():
        try:
            if hash_file(folder / path) != digest:
                problems.append(f"{path}: the checksum differs from the committed one")
        except FileNotFoundError:
            problems.append(f"{path}: missing")
        except OSError as error:
            problems.append(f"{path}: cannot be read: {error.strerror}")
    return problems


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def resolve(target: Path, say: Callable[[str], None], sets: Sequence[str] = SETS) -> None:
    """Let Ivy resolve `ivy.xml` and copy every artifact of the sets to `target`."""
    user_dir = cache_folder("ivy")
    command = [str(find_java()), f"-Divy.default.ivy.user.dir={user_dir}"]
    if find_system_java() is None:  # a system Java has the system's trust store already
        command += write_truststore(user_dir / "authorities.jks")
    command += ["-jar", str(find_spark_jar("ivy-*.jar")), "-verbose"]
    settings = os.environ.get("UNSKEW_IVY_SETTINGS")
    if settings:
        command += ["-settings", settings]
    command += ["-ivy", str(find_resource("ivy.xml")), "-confs", *sets]
    command += ["-retrieve", f"{target}/{_PATTERN}"]
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        try:
            assert ivy.stdout is not None
            _follow(ivy.stdout, lines, say, len(read_expected(sets)))
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode != 0:
        raise ExternalError(
            "jars: Ivy could not fetch them; is a Maven repository reachable?"
            " (UNSKEW_IVY_SETTINGS names a settings file for a mirror)",
            *[f"jars: {reason}" for reason in dict.fromkeys(_find_reasons(lines))],
        )


def _find_reasons(lines: list[str]) -> Iterator[str]:
    """Find why Ivy failed: the network's errors, then "org#name;version: not found"."""
    for line in lines:
        if match := re.search(r"Server access error at url \S+ \((.+)\)", line):
            yield match.group(1)
    for line in lines:
        if match := re.match(r"\s*:: (\S+#\S+: .+)", line):
            yield match.group(1)


def _follow(
    output: Iterator[str], lines: list[str], say: Callable[[str], None], total: int
) -> None:
    resolved = done = 0
    for line in output:
        lines.append(line.rstrip())
        if line.startswith("\tfound "):
            resolved += 1
            say(f"jars: {resolved} artifacts resolved")
        elif "[SUCCESSFUL ]" in line:
            done += 1
            say(f"jars: {done} of {total} downloaded")


def _fetch(folder: Path, sets: Sequence[str], say: Callable[[str], None]) -> None:
    what = "the Kafka connector and a broker, once (54 MB)" if sets == _ALWAYS else sets[0]
    say(f"jars: fetching {what}")
    staging = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(staging, ignore_errors=True)
    try:
        resolve(staging, say, sets)
        wrong = find_problems(staging, sets)
        if wrong:
            raise ExternalError(*[f"jars: {problem}; not used" for problem in wrong])
        folder.mkdir(parents=True, exist_ok=True)
        for name in sets:
            shutil.rmtree(folder / name, ignore_errors=True)
            (staging / name).replace(folder / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    # The jars are in place: Ivy's own copies would only double the space.
    shutil.rmtree(cache_folder("ivy"), ignore_errors=True)
    say(f"jars: {len(read_expected(sets))} verified")


def _digest() -> str:
    digest = hashlib.sha256()
    for name in ("ivy.xml", "jars.sha256"):
        digest.update(find_resource(name).read_bytes())
    return digest.hexdigest()[:16]


def find_spark_jar(pattern: str) -> Path:
    """Find one of the jars that come with pyspark."""
    spec = util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob(f"jars/{pattern}"))


@contextmanager
def _lock(say: Callable[[str], None]) -> Iterator[None]:
    with (cache_folder("jars") / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("jars: another process is fetching them; waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    """Progress on standard error: one line that moves on a terminal, milestones otherwise."""
    if sys.stderr.isatty():
        end = "\n" if line.endswith(("verified", "waiting")) else ""
        print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)
    elif not any(character.isdigit() for character in line.split()[1]) or line.endswith("verified"):
        print(line, file=sys.stderr, flush=True)
