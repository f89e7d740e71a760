"""`python`: results to a function of the user's own, in a file beside the job or in a module.

    sinks:
      - type: python
        file: alerts.py
        function: write
        options: {url: "http://127.0.0.1:8080"}

The driver calls `write(results, batch_id, url=...)` with a DataFrame of each batch's results. A
batch that runs again after a crash has the same id: writing it again must change nothing.
"""

import inspect
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from unskew.config.models.sink import Identity
from unskew.config.problems.user_options import make_field_error, validate_options
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.jobs.operators.user_code.user_file import UserFile, load_user_module
from unskew.jobs.sinks.base import Batch, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SinkFunctionError(Exception):
    """A user's function raised; the message has file and line."""


class PythonSink(Sink):
    """Calls a function of the user's own.

    Results to a function of the user's own: in a Python file beside the job, or in a module.
    """

    # The function may look at some rows only.
    computes_every_row: ClassVar[bool] = False

    file: UserFile | None = Field(default=None, examples=["alerts.py"])
    """The Python file that has the function, relative to the job file; it is sent to the
    executors."""
    module: str | None = Field(default=None, examples=["company.alerts"])
    """In place of a file: the module that has it, installed here and on every executor."""
    function: str = Field(examples=["write"])
    """The function: it gets a batch's results as a DataFrame, the batch's id, and `options` by
    name. A batch that runs again has the same id, and must be written again with the same
    effect."""
    options: dict[str, Any] = Field(default_factory=dict, examples=[{"channel": "fraud"}])
    """Further arguments of the function, by name."""

    @model_validator(mode="after")
    def _can_be_called(self) -> Self:
        module = load_user_module(self.file, self.module)
        chosen = getattr(module, self.function, None)
        if not inspect.isroutine(chosen):
            known = [name for name, _ in inspect.getmembers(module, inspect.isfunction)]
            advice = suggest_nearest(self.function, known) if known else "define it"
            where = self.file or self.module
            raise make_field_error(
                "function", self.function, f"no such function in {where}", advice
            )
        signature = inspect.signature(chosen)
        try:
            taken = signature.bind_partial(None, 0).arguments
            further = [each for name, each in signature.parameters.items() if name not in taken]
            validate_options(_make_options_model(further), "options", self.options)
            signature.bind(None, 0, **self.options)
        except TypeError as error:
            raise make_rule_error(
                f"function: {self.function} cannot be called with results, batch id and options:"
                f" {error}",
                f"write def {self.function}({', '.join(('results', 'batch_id', *self.options))})",
            ) from None
        return self

    def identity(self) -> Identity:
        chosen = (self.file, self.module, self.function)
        return Identity("function", (*chosen, *sorted(map(str, self.options.items()))))

    def files(self) -> list[str]:
        return [self.file] if self.file else []

    def write(self, results: "DataFrame", batch: Batch) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        module = load_user_module(self.file, self.module)
        function: Callable[..., object] = getattr(module, self.function)
        try:
            function(results, batch.id, **self.options)
        except (Py4JError, PySparkException):
            raise  # Spark's own, which have causes that are read elsewhere
        except Exception as error:
            raise SinkFunctionError(self._describe(error, module.__file__)) from error

    def _describe(self, error: Exception, file: str | None) -> str:
        """Describe what was raised and in which line, of the user's own file if it is there."""
        frames = traceback.extract_tb(error.__traceback__)
        frame = ([frame for frame in frames if frame.filename == file] or frames)[-1]
        kind = type(error)
        name = (
            kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        )
        text = " ".join(str(error).split())
        where = f"{frame.filename}:{frame.lineno}"
        return (
            f"sink {self.function}: {name}: {text} ({where})"
            if text
            else f"sink {self.function}: {name} ({where})"
        )


def _make_options_model(parameters: Iterable[inspect.Parameter]) -> type[BaseModel]:
    """The options that a function takes by these names, of any type."""
    fields: dict[str, Any] = {}
    extra: Literal["allow", "forbid"] = "forbid"
    for each in parameters:
        if each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY}:
            default = ... if each.default is each.empty else None
            # By another name than the function's, which a model's attribute may have.
            fields[f"option_{len(fields)}"] = (Any, Field(default, alias=each.name))
        elif each.kind == each.VAR_KEYWORD:
            extra = "allow"
    return create_model("Options", __config__=ConfigDict(extra=extra), **fields)
