"""Starting the driver's JVM so that none of its settings is on its command line.

Every user of a machine can read the command lines of all its processes. pyspark would write each
setting there. Here Spark's launcher gets them in files that only this user can read, and that are
removed once the JVM has read them: the settings as a properties file, the options of the JVM itself
as an argument file of Java's launcher.
"""

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway

from unskew.config.errors import ExternalError
from unskew.grouping.spark.private_files import write_private

# In this order, as Spark joins them.
_JVM_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def launch(settings: Mapping[str, str]) -> None:
    """Start the JVM, if there is none yet, for the session that is made next."""
    # pyspark has no public way to give a context a gateway before its settings are known.
    if SparkContext._gateway is not None:  # noqa: SLF001
        return
    options = _read_jvm_options(settings)
    with tempfile.TemporaryDirectory(prefix="unskew-") as folder:
        properties, arguments = Path(folder, "spark.properties"), Path(folder, "java.arguments")
        # Set to empty, so that the values of spark-defaults.conf are not used instead.
        of_spark = {name: "" if name in _JVM_OPTIONS else settings[name] for name in settings}
        write_private(properties, _format_properties(of_spark))
        write_private(arguments, "".join(f"{_quote_argument(word)}\n" for word in options))
        words = ["--load-spark-defaults", "--properties-file", str(properties)]
        # Spark splits this text once more.
        words += ["--driver-java-options", shlex.quote(f"@{arguments}")]
        with _set_submit_arguments(words):
            # In a process group of its own: a SIGTERM to this one's would end the JVM in mid-batch,
            # with a trace. It ends when this process does, by its standard input.
            own_group = {"process_group": 0}
            gateway: Any = launch_gateway(popen_kwargs=own_group)  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001


def _read_jvm_options(settings: Mapping[str, str]) -> list[str]:
    words: list[str] = []
    for name in _JVM_OPTIONS:
        try:
            given = shlex.split(settings.get(name, ""))
        except ValueError as error:
            raise ExternalError(f"spark.{name}: a quotation mark is never closed") from error
        if any(word.startswith("-Xmx") for word in given):
            raise ExternalError(f"spark.{name}: -Xmx is not allowed; write spark.driver.memory")
        words += given
    return words


@contextmanager
def _set_submit_arguments(words: list[str]) -> Iterator[None]:
    """Put words before those that the environment has for Spark's launcher."""
    given = os.environ.get(_SUBMIT_ARGUMENTS)
    os.environ[_SUBMIT_ARGUMENTS] = f"{shlex.join(words)} {given or 'pyspark-shell'}"
    try:
        yield
    finally:
        if given is None:
            del os.environ[_SUBMIT_ARGUMENTS]
        else:
            os.environ[_SUBMIT_ARGUMENTS] = given


def _format_properties(settings: Mapping[str, str]) -> str:
    """A file of Java properties; only letters and digits are not escaped."""
    return "".join(f"{_escape(name)}={_escape(text)}\n" for name, text in settings.items())


def _escape(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(
        chr(unit) if unit < 128 and chr(unit).isalnum() else f"\\u{unit:04x}"
        for unit in (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    )


def _quote_argument(word: str) -> str:
    """A word of Java's command line as it is in an argument file: between quotes."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return f'"{"".join(escapes.get(char, char) for char in word)}"'
