"""Reading small files that a user names, without waiting for one that never ends."""

import errno
import os
import stat
from pathlib import Path


def read_regular_file(path: Path, bytes_max: int) -> bytes:
    """At most `bytes_max` and one bytes of a file; OSError, also for a pipe, socket or device.

    A pipe is opened without waiting for its writer, who may never come.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(bytes_max + 1)
    finally:
        os.close(descriptor)
