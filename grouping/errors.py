"""Exceptions for wrong use of a grouping. `assert` is for our own mistakes."""


class GroupingError(ValueError):
    """A grouping was given something it cannot work with; the message names the field."""


class TakenOverError(GroupingError):
    """Another start works on the checkpoint since: this one may not write to it any more."""


class SnapshotError(GroupingError):
    """A snapshot is damaged, or belongs to another grouping, version or size."""
