"""What the options of every operator share."""

from typing import TYPE_CHECKING

from unskew.config.models.base import Model


class OperatorOptions(Model):
    """An operator's options."""

    if TYPE_CHECKING:

        @property
        def type(self) -> str:
            """The operator's registered name; subclasses made for a job have it as a field."""
