"""What the options of every operator share."""

from typing import TYPE_CHECKING

from unskew.config.models.base import Model, is_expression
from unskew.config.problems.problem import Path

OPEN_KEYS = 100


class OperatorOptions(Model):
    """An operator's options."""

    def expressions(self) -> list[tuple[Path, str]]:
        """The SQL expressions over a record among the options, and where each stands."""
        return [
            ((name,), getattr(self, name))
            for name, field in type(self).model_fields.items()
            if is_expression(field) and getattr(self, name) is not None
        ]

    def state(self) -> dict[str, object]:
        """What the merge's state depends on, by path: a checkpoint fixes it."""
        return {}

    def result_names(self) -> list[str]:
        """The names of the results of a job that has several; none of any other job."""
        return []

    def nested_columns(self, result: str | None) -> list[str]:
        """The columns of a result, of one of several by its name, that are lists or structs."""
        return []

    def opened_max(self) -> int:
        """For how many keys a worker keeps open what an operator opens, if it opens anything."""
        return OPEN_KEYS

    def files(self) -> list[str]:
        """The Python files that executors need."""
        return []

    def code(self) -> str:
        """A hash of those files; empty if there are none."""
        return ""

    if TYPE_CHECKING:

        @property
        def type(self) -> str:
            """The operator's registered name; subclasses made for a job have it as a field."""
