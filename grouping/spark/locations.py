"""Opening folders by path or URI, as Spark writes them, without Spark.

Object stores and HDFS are opened by pyarrow with the credentials of the environment (`AWS_...`,
`GOOGLE_APPLICATION_CREDENTIALS`, ...); Spark's own settings for them are read by Hadoop only.
"""

import os

import pyarrow as pa
from pyarrow import fs

# Schemes by Hadoop's name that pyarrow names otherwise.
_SCHEMES = {"s3a": "s3"}
_KNOWN = "a path, file:, s3a:, gs:, abfss: or hdfs:"


def open_location(location: str) -> tuple[fs.FileSystem, str]:
    """Open the filesystem of a path or URI; it and the path in it. An OSError has one line."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme or not rest.startswith("/"):
        return fs.LocalFileSystem(), os.path.abspath(location)  # noqa: PTH100 - as a text
    if scheme == "file":
        # Hadoop does not decode such paths: blanks and percent signs stand for themselves.
        path = rest.removeprefix("//")
        if not path.startswith("/"):
            raise OSError(f"file: URIs name no host (got {location}); write file:/PATH")
        return fs.LocalFileSystem(), os.path.normpath(path)
    try:
        system, path = fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}:{rest}")
    except pa.ArrowInvalid as error:
        raise OSError(f"{scheme}: is not a scheme that can be opened; use {_KNOWN}") from error
    except OSError as error:
        reason = str(error).partition("\n")[0].partition("; Details:")[0]
        needs = " (it needs JAVA_HOME, HADOOP_HOME and CLASSPATH)" if scheme == "hdfs" else ""
        raise OSError(f"{scheme}: cannot be opened: {reason}{needs}") from error
    return system, path.rstrip("/")


def find_local_path(location: str) -> str | None:
    """The path of a location on this machine; None of one that is elsewhere."""
    system, path = open_location(location)
    return path if isinstance(system, fs.LocalFileSystem) else None
