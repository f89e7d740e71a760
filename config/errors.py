"""Errors that end a command: one line for each problem, and the exit code."""


class UnskewError(Exception):
    """An error that the user can fix. `problems` are whole lines, ready to print."""

    exit_code = 1

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UsageError(UnskewError):
    """The command line or a file is wrong: nothing was started."""

    exit_code = 2


class ExternalError(UnskewError):
    """Something outside failed: a broker, a download, a port, a JVM."""
