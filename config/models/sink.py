"""What is asked of every target that a job writes to, a sink or dead letters, before it runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from unskew.config.models.base import Model


class Identity(NamedTuple):
    """What makes two targets of one type the same, and the field that would tell them apart."""

    field: str
    values: tuple[object, ...]


class TargetOptions(Model):
    """Where a job writes to."""

    if TYPE_CHECKING:

        @property
        def type(self) -> str:
            """The target's name; a field of the section that a job has."""

    def identity(self) -> Identity:
        """Two targets of one type and identity would write over each other."""
        return Identity("type", (self.model_dump_json(),))

    def folders(self) -> Mapping[str, str]:
        """The folders that it writes to, paths or URIs, by the field that names each."""
        return {}
