"""Classes by name: a table of texts `module:Class`, and what other distributions install.

One registry for each kind of thing that a job can name and a user can bring. A class is imported
when it is loaded, so that whoever only needs the names imports none.
"""

import importlib
from collections.abc import Mapping
from typing import Any


class RegistryError(Exception):
    """A name whose class cannot be had, and why."""


class Registry:
    """The classes of one kind: all are subclasses of `base`, also a `module:Class`.

    >>> dates = Registry({"time": "datetime:datetime"}, "unskew.example_dates", "datetime:date")
    >>> dates.names()
    ['time']
    >>> dates.load("time")
    <class 'datetime.datetime'>
    """

    def __init__(self, table: Mapping[str, str], entry_point_group: str, base: str) -> None:
        self._table = dict(table)
        self.entry_point_group = entry_point_group
        self._base = base

    def list_shipped_names(self) -> list[str]:
        """The names of the table, in its order."""
        return list(self._table)

    def list_installed_names(self) -> list[str]:
        """The names that other distributions bring; one of the table cannot be replaced."""
        from importlib.metadata import entry_points  # noqa: PLC0415 - 50 ms that few jobs need

        names = {entry.name for entry in entry_points(group=self.entry_point_group)}
        return sorted(names - self._table.keys())

    def names(self) -> list[str]:
        """All names: those of the table first."""
        return [*self._table, *self.list_installed_names()]

    def load(self, name: str) -> Any:
        """The class `name`; RegistryError says which entry point fails and why."""
        if name in self._table:
            return _import(self._table[name])
        return self._load_installed(name)

    def _load_installed(self, name: str) -> Any:
        from importlib.metadata import entry_points  # noqa: PLC0415 - as above

        entry = next(iter(entry_points(group=self.entry_point_group, name=name)), None)
        if entry is None:
            raise RegistryError(f"no installed package brings {name} as {self.entry_point_group}")
        try:
            loaded = entry.load()
        except Exception as error:  # another's code may raise anything on import
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise RegistryError(f"{entry.value} cannot be imported: {reason}") from error
        base = _import(self._base)
        if not (isinstance(loaded, type) and issubclass(loaded, base)):
            raise RegistryError(f"{entry.value} is no subclass of unskew.{base.__name__}")
        if missing := sorted(getattr(loaded, "__abstractmethods__", ())):
            raise RegistryError(f"{entry.value} does not define {', '.join(missing)}")
        return loaded


def _import(text: str) -> Any:
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)
