"""Folders by path or URI, as Spark names them, opened without Spark.

Object stores and HDFS are opened by pyarrow, with the environment's credentials (`AWS_...`,
`GOOGLE_APPLICATION_CREDENTIALS`, ...): what Spark's own settings say of them is Hadoop's.
"""

import os

import pyarrow as pa
from pyarrow import fs

# Hadoop's name of a scheme, where pyarrow has another.
_SCHEMES = {"s3a": "s3"}
_KNOWN = "a path, file:, s3a:, gs:, abfss: or hdfs:"


def open_location(location: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or URI, and the path in it; an OSError of one line if none is."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme or not rest.startswith("/"):
        return fs.LocalFileSystem(), os.path.abspath(location)  # noqa: PTH100 - as a text
    if scheme == "file":
        # As Hadoop reads it: blanks and percent signs are themselves.
        path = rest.removeprefix("//")
        if not path.startswith("/"):
            raise OSError(f"file: URIs name no host (got {location}); write file:/PATH")
        return fs.LocalFileSystem(), os.path.normpath(path)
    try:
        system, path = fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}:{rest}")
    except pa.ArrowInvalid as error:
        raise OSError(f"{scheme}: is nothing that can be opened here; use {_KNOWN}") from error
    except OSError as error:
        reason = str(error).partition("\n")[0].partition("; Details:")[0]
        needs = " (it needs JAVA_HOME, HADOOP_HOME and CLASSPATH)" if scheme == "hdfs" else ""
        raise OSError(f"{scheme}: cannot be opened: {reason}{needs}") from error
    return system, path.rstrip("/")
