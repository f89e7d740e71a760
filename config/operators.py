"""Operators of a user's own, found by entry points; none is imported unless a job names it."""

from unskew.config.models.operator import ENTRY_POINT_GROUP, SHIPPED_NAMES, OperatorOptions


class OperatorError(Exception):
    """An installed operator that cannot be used, and why."""


def installed_names() -> list[str]:
    """The names of the operators that other distributions bring."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 50 ms that few jobs need

    found = {entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}
    return sorted(found - set(SHIPPED_NAMES))


def installed_operator(name: str) -> type[OperatorOptions]:
    """The options of the installed operator `name`; OperatorError if it is not as it must be."""
    from importlib.metadata import entry_points  # noqa: PLC0415

    entry = next(iter(entry_points(group=ENTRY_POINT_GROUP, name=name)))
    try:
        operator = entry.load()
    except Exception as error:  # noqa: BLE001 - another's code may raise anything on import
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise OperatorError(f"{entry.value} cannot be imported: {reason}") from None
    options = getattr(operator, "Options", None)
    if not (isinstance(options, type) and issubclass(options, OperatorOptions)):
        raise OperatorError(f"{entry.value} has no Options, a subclass of OperatorOptions")
    splits = bool(getattr(operator, "splits", options.splits))
    return type(options.__name__, (options,), {"splits": splits, "__doc__": options.__doc__})
