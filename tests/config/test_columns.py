"""Which fields of an operator name columns: their type says it."""

from unskew.config.models.base import Expression, is_expression
from unskew.config.models.operator import OperatorOptions


class Mixed(OperatorOptions):
    """Fields of several types."""

    column: Expression
    perhaps: Expression | None = None
    text: str = "column"
    number: int | None = None


def test_a_field_is_an_expression_by_its_type() -> None:
    fields = [name for name, field in Mixed.model_fields.items() if is_expression(field)]
    assert fields == ["column", "perhaps"]
