"""What the options of all targets (sinks and dead letters) share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from unskew.config.models.base import Model


class Identity(NamedTuple):
    """Values that two targets of one type must not share, and the field to report if they do."""

    field: str
    values: tuple[object, ...]


class TargetOptions(Model):
    """The options of a target that a job writes to."""

    takes_rows: ClassVar[bool] = False
    """Can it be what the operator `rows` writes to: a table whose partitions are its writers?"""

    if TYPE_CHECKING:

        @property
        def type(self) -> str:
            """The target's registered name; subclasses made for a job have it as a field."""

    def identity(self) -> Identity:
        """The target's identity: two of one type and identity would overwrite each other."""
        return Identity("type", (self.model_dump_json(),))

    def files(self) -> list[str]:
        """The Python files that executors need."""
        return []

    def folders(self) -> Mapping[str, str]:
        """The folders that it writes to, paths or URIs, by the field that names each."""
        return {}
