"""The command line, read by the rules of job files: what is wrong is one line with a suggestion."""

import argparse
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from pydantic_core import PydanticCustomError

from unskew.config.errors import UsageError
from unskew.grouping.options.broken_rules import describe_unknown
from unskew.grouping.options.printed import show
from unskew.grouping.options.scalars import ScalarError, resolve
from unskew.grouping.options.suggestions import add_suggestion, find_nearest, one_of

T = TypeVar("T")


class CommandParser(argparse.ArgumentParser):
    """argparse whose errors are one line, without the usage, and suggest the nearest name."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The known words; an unknown one is an error here, where its neighbours are known."""
        # First: argparse would rather say what is missing beside it.
        misspelt = self._find_unknown_flag(list(sys.argv[1:] if args is None else args))
        if misspelt is not None:
            self.error(self._unknown(misspelt))
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return parsed, unknown

    def _find_unknown_flag(self, words: list[str]) -> str | None:
        """The first word that looks like a long option and is none; a command has its own."""
        has_commands = any(action.nargs == argparse.PARSER for action in self._actions)
        for word in words:
            if word == "--" or (has_commands and not word.startswith("-")):
                return None
            name = word.partition("=")[0]
            # A beginning that only one option has stands for it.
            known = any(flag.startswith(name) for flag in self._option_string_actions)
            if word.startswith("--") and not known:
                return word
        return None

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"{show(word)}: unexpected argument"
        name = word.partition("=")[0]
        flags = [flag for action in self._actions for flag in action.option_strings]
        return f"{name}: {add_suggestion(*describe_unknown('option', name, flags))}"

    def error(self, message: str) -> NoReturn:
        """One problem, as of a job file."""
        command = self.prog.removeprefix("unskew ")
        raise UsageError(f"{command}: {message.removeprefix('argument ')}")


def add_job_argument(parser: argparse.ArgumentParser) -> None:
    """Add JOB, the job that a command is about."""
    parser.add_argument(
        "job", metavar="JOB", help="a job file, or the name of a shipped job such as word_count"
    )


def parse_whole_number(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number from `least` to `most`."""

    def read(text: str) -> int:
        value = _scalar(text)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _error(f"a whole number from {least} to {most}", value)
        return value

    return read


def number(least: float, most: float) -> Callable[[str], float]:
    """Reads a number from `least` to `most`."""

    def read(text: str) -> float:
        value = _scalar(text)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= float(str(value)) <= most:
            raise _error(f"a number from {least:g} to {most:g}", value)
        return float(str(value))

    return read


def choice(*words: str) -> Callable[[str], str]:
    """Reads one of `words`."""

    def read(text: str) -> str:
        if text not in words:
            near = find_nearest(text, words)
            raise _error(one_of(words), text, f'did you mean "{near}"?' if near else "")
        return text

    return read


def checked(validate: Callable[[str], T]) -> Callable[[str], T]:
    """Reads what a validator of job files takes, by its rule."""

    def read(text: str) -> T:
        try:
            return validate(text)
        except PydanticCustomError as error:
            suggestion = str((error.context or {}).get("suggestion", ""))
            raise _error(error.message(), text, suggestion) from None

    return read


def _scalar(text: str) -> object:
    try:
        return resolve(text)
    except ScalarError as error:
        raise argparse.ArgumentTypeError(f"{error.rule}; {error.suggestion}") from None


def _error(rule: str, value: object, suggestion: str = "") -> argparse.ArgumentTypeError:
    text = add_suggestion(f"{rule} (got {show(value)})", suggestion)
    return argparse.ArgumentTypeError(text)
