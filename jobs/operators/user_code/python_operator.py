"""`python`: an operator of the user's own, a class in a file beside the job or in a module.

    operator:
      type: python
      file: scoring.py
      class: Scoring
      options: {threshold: 3}

The class is a `RowOperator`, which gets one row after the other, or an `Operator`, whose `partial`
gets a `pyarrow.Table`. Its module is named as its file is, and goes to the executors as Spark's
`addPyFile` sends it. A job file is trusted like code: to check it is to import what it names.
"""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from unskew.config.models.operator import OPEN_KEYS, OperatorOptions
from unskew.config.problems.problem import Path as ProblemPath
from unskew.config.problems.user_options import make_field_error, validate_options
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.jobs.operators.base import Operator
from unskew.jobs.operators.user_code.rows import OPENED, RowOperator
from unskew.jobs.operators.user_code.user_file import UserFile, load_user_module


class PythonOptions(OperatorOptions):
    """An operator of the user's own."""

    file: UserFile | None = Field(default=None, examples=["scoring.py"])
    """The Python file that has the class, relative to the job file; it is sent to the executors."""
    module: str | None = Field(default=None, examples=["company.scoring"])
    """In place of a file: the module that has it, installed here and on every executor."""
    class_name: str = Field(alias="class", examples=["Scoring"])
    """The class, a `RowOperator` or another `Operator` of `unskew`."""
    options: dict[str, Any] = Field(default_factory=dict, examples=[{"least": 3}])
    """The options of the class."""
    open_keys: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, examples=[1_000]
    )
    """For how many keys each worker process keeps open what the class's `open(key)` returned, by
    default 100. A worker meets the keys of other partitions in each batch, so what pays is room for
    all keys of a batch."""

    @model_validator(mode="after")
    def _can_be_loaded(self) -> Self:
        _ = self.user_options
        try:
            _ = self.class_expressions
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise make_rule_error(
                f"class: {self.class_name} does not say its key and inputs: {reason}", "mend it"
            ) from None
        self._check_open()
        return self

    def _check_open(self) -> None:
        """A rule error where `open` would never be called, or its result could not be reached."""
        chosen, name = self.implementation, self.class_name
        if not chosen.defines_open():
            if self.open_keys is not None:
                raise make_rule_error(
                    f"open_keys with a class that has open(self, key); {name} has none", "remove it"
                )
        elif chosen.native:
            raise make_rule_error(
                f"class: {name} has open, which plain Spark never calls", "write native = False"
            )
        elif issubclass(chosen, RowOperator) and OPENED in chosen(self.user_options).inputs:
            raise make_rule_error(
                f"class: {name} has an input {OPENED}, the name of what is open", "rename the input"
            )

    @cached_property
    def implementation(self) -> type[Operator]:
        """Load the operator's class."""
        module = load_user_module(self.file, self.module)
        where = self.file or self.module
        chosen = getattr(module, self.class_name, None)
        if not (isinstance(chosen, type) and issubclass(chosen, Operator)):
            known = [name for name, each in vars(module).items() if _is_own(each, module)]
            advice = (
                suggest_nearest(self.class_name, known) if known else "derive it from RowOperator"
            )
            raise make_field_error("class", self.class_name, f"no such operator in {where}", advice)
        if missing := sorted(getattr(chosen, "__abstractmethods__", ())):
            raise make_rule_error(f"class: {self.class_name} does not define {', '.join(missing)}")
        if not isinstance(getattr(chosen, "Options", None), type):
            raise make_rule_error(
                f"class: {self.class_name} has no Options", "write Options = OperatorOptions"
            )
        return chosen

    @cached_property
    def user_options(self) -> OperatorOptions:
        """The options of the class, as it declares them."""
        model: type[OperatorOptions] = self.implementation.Options
        return validate_options(model, "options", self.options)

    @cached_property
    def class_expressions(self) -> list[str]:
        """The expressions that the class itself has, as key, inputs and rules."""
        operator = self.implementation(self.user_options)
        texts = [operator.keys, operator.inputs, operator.reject_rules]
        return [text for each in texts for text in each.values()]

    def expressions(self) -> list[tuple[ProblemPath, str]]:
        given: list[tuple[ProblemPath, str]] = [
            (("options", *path), text) for path, text in self.user_options.expressions()
        ]
        known = {text for _, text in given}
        return given + [
            (("class",), text)
            for text in dict.fromkeys(self.class_expressions)
            if text not in known
        ]

    def state(self) -> dict[str, object]:
        operator = self.implementation(self.user_options)
        return {
            "operator.partial_columns": dict(operator.partial_columns),
            "operator.merge": dict(operator.merge),
        }

    def opened_max(self) -> int:
        return self.open_keys or OPEN_KEYS

    def files(self) -> list[str]:
        return [self.file] if self.file else []

    def code(self) -> str:
        if self.file is None:
            return ""
        return sha256(Path(self.file).read_bytes()).hexdigest()


class PythonOperator(Operator):
    """A class of the user's own.

    An operator of the user's own: a class in a Python file beside the job, or in a module.
    """

    Options = PythonOptions

    @classmethod
    def from_options(cls, options: Any) -> Operator:
        operator: Operator = options.implementation(options.user_options)
        return operator

    @property
    def key(self) -> str:
        raise NotImplementedError("`of` makes an operator of another class")

    @property
    def partial_columns(self) -> Mapping[str, str]:
        raise NotImplementedError("`of` makes an operator of another class")

    @property
    def merge(self) -> Mapping[str, str]:
        raise NotImplementedError("`of` makes an operator of another class")

    @property
    def direct(self) -> Mapping[str, str]:
        raise NotImplementedError("`of` makes an operator of another class")


def _is_own(value: Any, module: ModuleType) -> bool:
    is_operator = isinstance(value, type) and issubclass(value, Operator)
    return is_operator and value.__module__ == module.__name__
