"""Checks of a grouping's arguments: the error names the wrong field."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.errors import GroupingError

if TYPE_CHECKING:
    from unskew.grouping.base import Feedback

FEEDBACK_MAX = 1e12
"""Records, or seconds, of one partition in one report: far above any, far below an overflow."""

_PARTITIONS: tuple[tuple[str, type[Any]], ...] = (
    ("records", np.int64),
    ("busy_seconds", np.float64),
)
_ROWS: tuple[tuple[str, type[Any]], ...] = (
    ("key_hashes", np.uint64),
    ("key_partitions", np.int32),
    ("key_records", np.int64),
    ("key_seconds", np.float64),
)


def check_range(field_name: str, value: object, low: int, high: int) -> int:
    """A whole number from `low` to `high`, as Python's own: numpy's overflow, and are no JSON."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise GroupingError(f"{field_name}: a whole number (got {value!r})")
    if not low <= value <= high:
        raise GroupingError(f"{field_name}: from {low} to {high} (got {value})")
    return int(value)


def validate_array(what: str, array: object, kind: type[Any]) -> NDArray[Any]:
    """`array` as kernels want it: one-dimensional, of type `kind`, in one block."""
    if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
        got = f"{array.dtype}, {array.ndim}-d" if isinstance(array, np.ndarray) else type(array)
        raise GroupingError(f"{what}: a one-dimensional array of {np.dtype(kind)} (got {got})")
    return np.ascontiguousarray(array)


def check_active(partitions: Iterable[object], count: int) -> list[int]:
    """The partitions that shall be active, sorted: at least one, all below `count`."""
    try:
        given = list(partitions)
    except TypeError as error:
        raise GroupingError(f"active: several whole numbers (got {partitions!r})") from error
    chosen = {check_range("active", partition, 0, count - 1) for partition in given}
    if not chosen:
        raise GroupingError("active: at least one partition must stay")
    return sorted(chosen)


def check_feedback(feedback: "Feedback", partitions: int) -> None:
    """One finite number a partition, and rows of equal length."""
    for what, kind in _PARTITIONS:
        values = _column(feedback, what, kind)
        if values.size != partitions:
            raise GroupingError(f"feedback.{what}: {partitions} values (got {values.size})")
        _check_numbers(what, values)
    rows = _column(feedback, *_ROWS[0]).size
    for what, kind in _ROWS[1:]:
        values = _column(feedback, what, kind)
        if values.size != rows:
            raise GroupingError(f"feedback.{what}: {rows} rows (got {values.size})")
        _check_numbers(what, values)
    if rows and feedback.key_partitions.max() >= partitions:
        raise GroupingError(f"feedback.key_partitions: below {partitions}")


def _column(feedback: "Feedback", what: str, kind: type[Any]) -> NDArray[Any]:
    values = getattr(feedback, what)
    # Whole numbers will do for seconds: nothing is lost.
    if isinstance(values, np.ndarray) and np.can_cast(values.dtype, kind):
        kind = values.dtype.type
    return validate_array(f"feedback.{what}", values, kind)


def _check_numbers(what: str, values: NDArray[Any]) -> None:
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise GroupingError(f"feedback.{what}: finite and not negative")
    if (values > FEEDBACK_MAX).any():
        raise GroupingError(f"feedback.{what}: at most {FEEDBACK_MAX:.0e} (got {values.max()})")
