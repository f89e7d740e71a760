"""An operator of a user's own whose keys cost a millisecond to open: for the table `placement`."""

import time
from typing import Any, ClassVar

from unskew import OperatorOptions, RowOperator

OPENING_SECONDS = 0.001


class Opening(RowOperator):
    """Counts the rows of keys, for each of which something is opened."""

    Options = OperatorOptions
    key = "value"
    partial_columns: ClassVar = {"rows": "BIGINT"}
    merge: ClassVar = {"rows": "sum(rows)"}

    def open(self, key: str) -> str:
        """Take the time of a small model."""
        time.sleep(OPENING_SECONDS)
        return key

    def start(self) -> int:
        """Begin with no row."""
        return 0

    def add(self, state: int, row: Any) -> int:
        """Count a row, and use what is open."""
        return state + bool(row.opened)

    def result(self, state: int) -> dict[str, int]:
        """Return the rows."""
        return {"rows": state}
