"""What a grouping is given: the reports of a batch, good and bad."""

import numpy as np
import pytest

from unskew.grouping.arguments import FEEDBACK_MAX, check_feedback
from unskew.grouping.base import Feedback
from unskew.grouping.errors import GroupingError


def _feedback(**changes: object) -> Feedback:
    fields: dict[str, object] = {
        "records": np.array([1, 2, 0]),
        "busy_seconds": np.array([0.1, 0.2, 0.0]),
        "key_partitions": np.array([0, 2], np.int32),
        "key_hashes": np.array([7, 8], np.uint64),
        "key_records": np.array([1, 1]),
        "key_seconds": np.array([0.1, 0.0]),
    }
    return Feedback(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"busy_seconds": np.array([0, 1, 2])},
        {"records": np.array([1, 2, 3], np.int32)},
        {"records": np.full(3, int(FEEDBACK_MAX)), "busy_seconds": np.full(3, FEEDBACK_MAX)},
    ],
    ids=["good", "whole seconds", "small integers", "largest"],
)
def test_feedback_of_any_fitting_numbers_is_taken(changes: dict[str, object]) -> None:
    check_feedback(_feedback(**changes), 3)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"records": np.array([1, 2])}, "feedback.records: 3 values (got 2)"),
        (
            {"records": np.array([[1, 2, 3]])},
            "feedback.records: a one-dimensional array of int64 (got int64, 2-d)",
        ),
        (
            {"records": [1, 2, 3]},
            "feedback.records: a one-dimensional array of int64 (got <class 'list'>)",
        ),
        (
            {"records": np.array([1.0, 2.0, 3.0])},
            "feedback.records: a one-dimensional array of int64 (got float64, 1-d)",
        ),
        (
            {"key_hashes": np.array([-1, 7])},
            "feedback.key_hashes: a one-dimensional array of uint64 (got int64, 1-d)",
        ),
        (
            {"busy_seconds": np.array([0.0, 1e13, 1.0])},
            "feedback.busy_seconds: at most 1e+12 (got 10000000000000.0)",
        ),
        ({"records": np.array([1, 2, -3])}, "feedback.records: finite and not negative"),
        ({"busy_seconds": np.zeros(4)}, "feedback.busy_seconds: 3 values (got 4)"),
        (
            {"busy_seconds": np.array([0, np.nan, 1])},
            "feedback.busy_seconds: finite and not negative",
        ),
        (
            {"busy_seconds": np.array([0, np.inf, 1])},
            "feedback.busy_seconds: finite and not negative",
        ),
        ({"key_records": np.array([1])}, "feedback.key_records: 2 rows (got 1)"),
        ({"key_seconds": np.array([1.0, -1.0])}, "feedback.key_seconds: finite and not negative"),
        ({"key_partitions": np.array([0, 3], np.int32)}, "feedback.key_partitions: below 3"),
        (
            {"key_partitions": np.array([0, -1], np.int32)},
            "feedback.key_partitions: finite and not negative",
        ),
    ],
)
def test_bad_feedback_is_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(GroupingError) as raised:
        check_feedback(_feedback(**changes), 3)

    assert str(raised.value) == problem
