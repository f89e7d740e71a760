"""`results`: several aggregates of one stream, each a result with its own key, columns and sinks.

    operators:
      - name: by_user
        key: user_id
        columns: {revenue: sum(amount)}
        sinks: [{type: kafka, topic: revenue}]
      - name: by_country
        key: country
        columns: {users: {distinct: user_id}}
        sinks: [{type: kafka, topic: users}]

They share window, lateness, grouping and checkpoint. A record becomes a row for each result that
wants it, whose column `key` is the result's name. So there is one read, one route, and one merge
over (window, result, key); the columns of the other results are null in a row.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from unskew.config.errors import UsageError
from unskew.config.models.operator import OperatorOptions
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.jobs.operators.aggregate import Aggregate, Section
from unskew.jobs.operators.aggregates.options import AggregateOptions
from unskew.jobs.operators.base import KEY, RESULT, Operator

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS_MAX = 20


class ResultOptions(AggregateOptions):
    """One of several results. Its key is no array, and reasons to reject begin with its name."""

    name: Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,62}$", examples=["by_user"])]
    """Its name in metrics and sinks: lower-case letters, digits and `_`."""


def _check_names(results: list[ResultOptions]) -> list[ResultOptions]:
    names = [result.name for result in results]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise make_rule_error(
            f'results of different names ("{twice}" is a duplicate)', "rename one"
        )
    return results


class ResultsOptions(OperatorOptions):
    """Several results of one stream; `operators` as a list is its short form."""

    results: Annotated[
        list[ResultOptions],
        Field(min_length=1, max_length=RESULTS_MAX),
        AfterValidator(_check_names),
    ] = Field(examples=[[{"name": "by_user", "key": "user_id", "columns": {"events": "count(*)"}}]])
    """The results, each as `aggregate` has it. A sink says by `result` which it takes."""

    def result_names(self) -> list[str]:
        return [result.name for result in self.results]

    def nested_columns(self, result: str | None) -> list[str]:
        named = (each for each in self.results if each.name == result)
        return [column for each in named for column in each.nested_columns(result)]

    def expressions(self) -> list[tuple[Path, str]]:
        return [
            (("results", index, *path), text)
            for index, result in enumerate(self.results)
            for path, text in result.expressions()
        ]

    def state(self) -> dict[str, object]:
        return {"operators": [result.name for result in self.results]} | {
            f"operators.{result.name}.{name.removeprefix('operator.')}": value
            for result in self.results
            for name, value in result.state().items()
        }

    @agrees_with("grouping", "window")
    def each_agrees(self, grouping: Any, window: Any) -> Iterator[Contradiction]:
        """Each result must obey the rules of an aggregate."""
        for index, result in enumerate(self.results):
            for wrong in (
                *result.names_differ(),
                *result.columns_are_inside_of_aggregates(),
                *result.distinct_values_need_a_window(window),
                *result.top_needs_plain_spark(grouping),
            ):
                yield replace(wrong, path=("results", index, *wrong.path))

    @agrees_with("sinks")
    def each_has_a_sink(self, sinks: list[Any]) -> Iterator[Contradiction]:
        """A result that is written nowhere is a mistake."""
        written = {sink.result for sink in sinks}
        for index, result in enumerate(self.results):
            if result.name not in written:
                yield Contradiction(
                    ("results", index, "name"),
                    f'no sink takes the result "{result.name}"',
                    "add sinks to it",
                )


class Results(Operator):
    """Several aggregates, which share all but key, condition, columns and sinks."""

    Options = ResultsOptions
    options: ResultsOptions
    parts: Mapping[str, Aggregate]

    def __init__(
        self, options: ResultsOptions, parts: Mapping[str, Aggregate] | None = None
    ) -> None:
        super().__init__(options)
        self.parts = parts or {
            result.name: Aggregate(
                result, section=Section(("operators", index), make_prefix(index))
            )
            for index, result in enumerate(options.results)
        }
        self.has_partials = all(part.has_partials for part in self.parts.values())
        self.wheres: Mapping[str, str] = {
            name: part.where for name, part in self.parts.items() if part.where is not None
        }
        """The conditions by their results' names."""

    @property
    def key(self) -> str:
        return KEY

    @property
    def keys(self) -> Mapping[str, str]:
        return {KEY: KEY, **self._unite(lambda part: part.keys)}

    @property
    def key_names(self) -> Mapping[str, str]:
        columns = self._unite(lambda part: part.keys)
        return {RESULT: KEY, **dict(zip(columns, columns, strict=True))}

    @property
    def key_types(self) -> Mapping[str, str]:
        return {KEY: "string", **self._unite(lambda part: part.key_types)}

    @property
    def texts(self) -> Mapping[str, str]:
        wheres = {f"{self.parts[name].section.prefix}where": w for name, w in self.wheres.items()}
        return {**self._unite(lambda part: part.texts), **wheres}

    def with_columns(self, columns: Mapping[str, str]) -> "Results":
        changed = Results(
            self.options, {name: part.with_columns(columns) for name, part in self.parts.items()}
        )
        changed.wheres = {
            name: columns[f"{self.parts[name].section.prefix}where"] for name in self.wheres
        }
        return changed

    def with_types(self, types: Mapping[str, str]) -> "Results":
        problems: list[str] = []
        parts = {}
        for name, part in self.parts.items():
            try:
                parts[name] = part.with_types(types)
            except UsageError as error:
                problems += error.problems
        if problems:
            raise UsageError(*problems)
        changed = Results(self.options, parts)
        changed.wheres = self.wheres
        return changed

    @property
    def inputs(self) -> Mapping[str, str]:
        return self._unite(lambda part: part.inputs)

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return self._unite(lambda part: part.partial_columns)

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """The partials of each result; of one that has no rows, its columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

        made = []
        for name, part in self.parts.items():
            partials = part.partial(rows.filter(pc.equal(rows[KEY], name)))
            tag = pa.repeat(pa.scalar(name, rows[KEY].type), partials.num_rows)
            made.append(partials.append_column(KEY, tag))
        # In a single piece: Spark reads an Arrow table up to its first empty batch.
        return pa.concat_tables(made, promote_options="default").combine_chunks()

    @property
    def merge(self) -> Mapping[str, str]:
        return self._unite(lambda part: part.merge)

    @property
    def direct(self) -> Mapping[str, str]:
        return self._unite(lambda part: part.direct)

    @property
    def final(self) -> Mapping[str, str]:
        # Null in the rows of other results, which have none of this one's totals.
        return {
            f"{part.section.prefix}{column}": f"CASE WHEN {KEY} = '{name}' THEN {text} END"
            for name, part in self.parts.items()
            for column, text in part.final.items()
        }

    def list_columns(self, result: str) -> Mapping[str, str]:
        """The columns of a result by their own names, without the window's bounds."""
        part = self.parts[result]
        own = {column: f"{part.section.prefix}{column}" for column in part.final}
        return {**part.key_names, **own}

    def _unite(self, of: Callable[[Aggregate], Mapping[str, str]]) -> dict[str, str]:
        return {name: text for part in self.parts.values() for name, text in of(part).items()}


def make_prefix(index: int) -> str:
    """Make what the columns of a result begin with, from its number."""
    return f"r{index}_"
