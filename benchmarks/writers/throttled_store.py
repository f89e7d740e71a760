"""A store whose every stream is throttled, as an object store's is: Hadoop's local file system,
with files of data that take a fixed number of bytes a second each, after a round trip.

The class is compiled with the JDK's `javac`, and must be in the JVM before its first file is
opened: so a process measures either the plain disk or the throttled store.
"""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

_SOURCE = Path(__file__).with_name("ThrottledFileSystem.java")
_CLASS = "benchmarks.ThrottledFileSystem"


@dataclass(frozen=True)
class Throttle:
    """How slow a stream is."""

    kilobytes_per_second: int
    open_millis: int

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.kilobytes_per_second} KB/s, {self.open_millis} ms"

    def spark_settings(self, folder: Path) -> Mapping[str, str]:
        """Settings of the first session of a process; the class is compiled into `folder`."""
        return {
            "spark.driver.extraClassPath": str(compile_store(folder)),
            "spark.hadoop.fs.file.impl": _CLASS,
            "spark.hadoop.throttled.bytes_per_second": str(self.kilobytes_per_second * 1000),
            "spark.hadoop.throttled.open_millis": str(self.open_millis),
        }


def compile_store(folder: Path) -> Path:
    """The folder of the compiled class."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise SystemExit("table_writers: --throttle needs javac, which comes with a JDK")
    jars = Path(pyspark.__file__).parent / "jars"
    classes = folder / "classes"
    classes.mkdir(exist_ok=True)
    words = [compiler, "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), str(_SOURCE)]
    subprocess.run(words, check=True)
    return classes
