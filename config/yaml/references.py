"""References in values: `${env:NAME}`, `${env:NAME:-default}`, `${file:/path}`.

They are expanded after the YAML has been read, so what they bring can never change its structure.
A value written without quotes is read again as a YAML scalar, so `${env:PORT}` can be a number;
where a text is asked for it is a text all the same. `$${` stands for `${` itself.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from unskew.config.files import read_regular_file
from unskew.config.problems.problem import Path as NodePath
from unskew.config.problems.problem import Problem, format_path
from unskew.config.types import jaas
from unskew.config.types.secrets import (
    find_address_passwords,
    find_java_option_secrets,
    holds_java_options,
    holds_secret,
)
from unskew.config.yaml.reader import Node, walk
from unskew.grouping.options.printed import show
from unskew.grouping.options.scalars import ScalarError, resolve
from unskew.grouping.options.suggestions import find_nearest

VALUE_BYTES_MAX = 64 * 1024

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:([^{}]*)\}|[^{}]*)")
_WHOLE = re.compile(r"\$\{(env:[A-Za-z_][A-Za-z0-9_]*(:-)?|file:/[^{}]+)\}")
_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL | re.ASCII)
# Below these, keys are names of topics, which may well be "password-resets".
_NAMED_BY_USERS = {("source", "assign"), ("source", "start")}
_FORMS = "the forms are ${env:NAME}, ${env:NAME:-default} and ${file:/path}; $${ is a plain ${"


SECRET_IN_FILE = ("a secret may not be written into the file", "write ${env:NAME} or ${file:/path}")


def is_reference(text: str) -> bool:
    """Is `text` one reference and nothing else, without a default?"""
    return bool(_WHOLE.fullmatch(text))


def expand(root: Node) -> tuple[list[Problem], set[str]]:
    """Expand every reference in place; the problems, and the texts that must not be shown."""
    problems: list[Problem] = []
    hidden: set[str] = set()
    done: set[int] = set()
    for path, node in walk(root):
        if isinstance(node.value, dict | list):
            continue
        key = _name_key(path)
        if holds_secret(key):
            node.secret = True
            problems += _check_literal_secret(path, node, key)
            if node.source is None:
                hidden.add(node.text)
        if holds_java_options(key):
            problems += _hide_secret_parts(
                path, node, hidden, find_java_option_secrets(_read_as_written(node))
            )
        elif path[-2:-1] in {("options",), ("spark",)}:
            in_address = dict(enumerate(find_address_passwords(_read_as_written(node))))
            problems += _hide_secret_parts(path, node, hidden, in_address)
        if id(node) not in done and "${" in node.text:
            done.add(id(node))
            in_jaas = jaas.is_jaas(key) and not is_reference(node.text)
            _expand_node(node, _Expander(path, node, hidden, in_jaas=in_jaas), problems)
        if node.secret and (node.source is None or is_reference(node.source)):
            hidden.add(node.text)
        if jaas.is_jaas(key):
            problems += _check_jaas(path, node, hidden)
    return problems, hidden


def _expand_node(node: Node, expander: "_Expander", problems: list[Problem]) -> None:
    original = node.text
    text = _REFERENCE.sub(expander.replace, original)
    problems += expander.problems
    node.source = original
    node.secret = node.secret or expander.secret
    node.referenced = expander.referenced
    node.text = text
    node.value = text
    if node.plain and not expander.problems:
        # What is ambiguous as a number (`010`) stays the text it is: it may be a password.
        with suppress(ScalarError):
            node.value = resolve(text)


class _Expander:
    """Replaces the references of one scalar."""

    def __init__(self, path: NodePath, node: Node, hidden: set[str], *, in_jaas: bool) -> None:
        self.path = path
        self.position = node.position
        self.hidden = hidden
        self.all_hidden = node.secret
        self.in_jaas = in_jaas
        self.referenced = False
        self.problems: list[Problem] = []
        self.secret = False

    def replace(self, match: re.Match[str]) -> str:
        written, inner = match.group(0), match.group(1)
        if written == "$${":
            return "${"
        if inner is None:
            self._report(f"{show(written)} is not a whole reference", _FORMS)
            return written
        value = self._read_value(inner)
        if value is None:
            self._report(f"{show(written)} is not a reference", _FORMS)
            return written
        if self.all_hidden:
            self.hidden.add(value)
        if not self.in_jaas:
            return value
        self.hidden |= jaas.list_secret_parts(value)
        # A quote in a password would end the value, and the client would print what follows.
        return jaas.insert(match.string[: match.start()], value)

    def _read_value(self, inner: str) -> str | None:
        kind = inner.partition(":")[0]
        if kind == "env" and (env := _ENV.fullmatch(inner)):
            return self._read_variable(env.group(1), env.group(2))
        if kind == "file":
            return self._read_file(inner.removeprefix("file").removeprefix(":"))
        return None

    def _read_variable(self, name: str, default: str | None) -> str:
        value = os.environ.get(name)
        if value is None and default is None:
            near = find_nearest(name, os.environ)
            self._report(
                f"the environment variable {name} is not set",
                f'did you mean "{near}"?' if near else f"set it, or write ${{env:{name}:-default}}",
            )
            return ""
        text = default if value is None or (not value and default) else value
        assert text is not None
        self.referenced = self.referenced or text is value
        if holds_secret(name):
            self.secret = True
            self.hidden.add(text)
        return text

    def _read_file(self, name: str) -> str:
        self.secret = self.referenced = True
        if not name.startswith("/"):
            self._report(
                f"the path of a file must be absolute (got {show(name)})", "begin it with /"
            )
            return ""
        try:
            raw = read_regular_file(Path(name), VALUE_BYTES_MAX)
            text = raw.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            self._report(f"the file {name} is not UTF-8 text", "check the path")
            return ""
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._report(f"the file {name} cannot be read: {reason}", "check path and permissions")
            return ""
        if len(raw) > VALUE_BYTES_MAX:
            self._report(
                f"the file {name} is larger than {VALUE_BYTES_MAX // 1024} KiB", "check the path"
            )
            return ""
        self.hidden.add(text)
        return text

    def _report(self, rule: str, suggestion: str) -> None:
        self.problems.append(Problem(self.position, format_path(self.path), rule, suggestion))


def _check_literal_secret(path: NodePath, node: Node, key: str) -> list[Problem]:
    """A secret's text must be one reference; in a JAAS line, each secret option's must."""
    written = node.text if node.source is None else node.source
    if node.value is None or isinstance(node.value, bool) or is_reference(written):
        return []
    if jaas.is_jaas(key) and _are_references(jaas.read_jaas_secrets(written)):
        return []
    if written.startswith("${env:") and ":-" in written:
        rule, advice = "the default of a secret is a secret in the file", "remove the default"
    else:
        rule, advice = SECRET_IN_FILE
    return [Problem(node.position, format_path(path), rule, advice)]


def _are_references(secrets: Mapping[Any, str]) -> bool:
    return bool(secrets) and all(is_reference(value) for value in secrets.values())


def _hide_secret_parts(
    path: NodePath, node: Node, hidden: set[str], secrets: Mapping[Any, str]
) -> list[Problem]:
    """Parts of a value that are secrets: hidden, and references too."""
    if not secrets:
        return []
    node.secret = True
    if _are_references(secrets):
        return []
    hidden |= set(secrets.values())
    return [Problem(node.position, format_path(path), *SECRET_IN_FILE)]


def _read_as_written(node: Node) -> str:
    """The text as the file has it."""
    return node.text if node.source is None else node.source


def _check_jaas(path: NodePath, node: Node, hidden: set[str]) -> list[Problem]:
    """Why Kafka's client could not read a line; it would print a part of it."""
    for secret in jaas.read_jaas_secrets(node.text).values():
        hidden |= jaas.list_secret_parts(secret)
    rule = jaas.problem(node.text) if isinstance(node.value, str) else ""
    advice = "check quotes and the semicolon at the end"
    return [Problem(node.position, format_path(path), rule, advice)] if rule else []


def _name_key(path: NodePath) -> str:
    """The last key by name: the entries of a list are named by the list's key."""
    if path[:2] in _NAMED_BY_USERS:
        return ""
    return next((part for part in reversed(path) if isinstance(part, str)), "")
