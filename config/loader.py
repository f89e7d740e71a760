"""Loads a job file: the result is a `Job`, or every problem of the file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any, cast

from pydantic import BaseModel, SecretStr, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from unskew.config.errors import UsageError
from unskew.config.models.base import CONTRADICTION, Model, holds_option_texts
from unskew.config.models.job import Job, make_job_model
from unskew.config.problems import messages
from unskew.config.problems.problem import (
    DocumentError,
    Path,
    Position,
    Problem,
    format_path,
    lines,
)
from unskew.config.problems.schema_walk import find_fields
from unskew.config.registry import RegistryError
from unskew.config.rules import contradictions
from unskew.config.rules.exclusive import find_exclusive_problems
from unskew.config.shipped import resolve_job
from unskew.config.specs import SECTIONS, is_installed, make_section_model
from unskew.config.types.secrets import holds_secret, redact
from unskew.config.warnings import JobWarning, warnings
from unskew.config.yaml.nodes import override
from unskew.config.yaml.reader import Node, parse, read_text, walk
from unskew.config.yaml.references import SECRET_IN_FILE, expand, is_reference
from unskew.config.yaml.results_list import write_out_results
from unskew.config.yaml.shorthands import write_out

SET_FLAG = "--set"
"""The option of the command line that replaces values of a file."""


@dataclass
class Loaded:
    """The result of loading one file: the job, or None if there are problems."""

    file: str
    job: Job | None = None
    root: Node | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    """Warnings about a job that can be used all the same."""
    hidden: set[str] = field(default_factory=set)
    text: str = ""
    """The file's whole text."""
    flag: str = SET_FLAG

    def lines(self) -> list[str]:
        """The problems as printed, no secret in them."""
        return [redact(line, self.hidden) for line in lines(self.file, self.problems)]


def load_job(path_or_name: str | FilePath, overrides: Mapping[str, object] | None = None) -> Job:
    """The job in a file, or the shipped job of that name; UsageError has all problems.

    `overrides` replaces values by dotted path before anything is checked, for example
    `{"partitions": 8, "source.bootstrap_servers": "127.0.0.1:9092"}`.
    """
    loaded = load(path_or_name, overrides, flag="overrides:")
    if loaded.job is None or loaded.problems:
        raise UsageError(*loaded.lines())
    return loaded.job


def load(
    path_or_name: str | FilePath,
    overrides: Mapping[str, object] | None = None,
    *,
    flag: str = SET_FLAG,
) -> Loaded:
    """Read and check one file; nothing is raised for what a file can have wrong.

    flag: what brought the overrides, as messages name it.
    """
    path = resolve_job(path_or_name)
    loaded = Loaded(str(path), flag=flag)
    try:
        loaded.text = read_text(path)
    except DocumentError as error:
        loaded.problems = list(error.problems)
        return loaded
    return _read(loaded, path.absolute().parent, overrides or {})


def load_text(text: str, name: str) -> Loaded:
    """Check a text as a file of this name in the working folder."""
    return _read(Loaded(name, text=text), FilePath.cwd(), {})


def _read(loaded: Loaded, folder: FilePath, overrides: Mapping[str, object]) -> Loaded:
    try:
        loaded.root, loaded.problems = parse(loaded.text)
    except DocumentError as error:
        loaded.problems = list(error.problems)
        return loaded
    _check(loaded, loaded.root, folder, overrides)
    return loaded


def _check(loaded: Loaded, root: Node, folder: FilePath, overrides: Mapping[str, object]) -> None:
    if not isinstance(root.value, dict):
        rule = f"a job is a mapping of keys to values{messages.show_got(root)}"
        loaded.problems.append(Problem(root.position, "job", rule, 'begin with "name: ..."'))
        return
    made = [override(root, path, value) for path, value in overrides.items()]
    problems, loaded.hidden = expand(root)
    write_out(root)
    in_results, paths = write_out_results(root)
    loaded.problems += [*problems, *in_results]
    model = _make_model(root, loaded.problems)
    # A value that could not even be read is wrong in every other way too: once is enough.
    broken = {problem.position for problem in loaded.problems}
    loaded.job, problems = _validate(model, root, {"folder": folder})
    loaded.problems += [problem for problem in problems if problem.position not in broken]
    if loaded.job is not None:
        loaded.problems += _find_literal_secrets(loaded.job, root, broken)
        loaded.hidden |= {text for _, text in _list_secrets(loaded.job)}
        loaded.warnings = [_locate_warning(root, warning) for warning in warnings(loaded.job)]
    loaded.problems = [_name_as_written(each, paths) for each in loaded.problems]
    loaded.warnings = [_name_as_written(each, paths) for each in loaded.warnings]
    loaded.problems = [_name_flag(each, made, loaded.flag) for each in loaded.problems]
    loaded.warnings = [_name_flag(each, made, loaded.flag) for each in loaded.warnings]


def _name_flag(problem: Problem, made: list[Path], flag: str) -> Problem:
    """Report the problem at the command line's option, if that set the value."""
    for path in map(format_path, made):
        if problem.path == path or problem.path.startswith((f"{path}.", f"{path}[")):
            return replace(problem, flag=flag)
    return problem


def _name_as_written(problem: Problem, paths: Mapping[str, str]) -> Problem:
    """Report the problem at the path that the file has, before short forms were expanded."""
    for begin, written in paths.items():
        if problem.path.startswith(begin):
            return replace(problem, path=written + problem.path.removeprefix(begin))
    return problem


def _locate_warning(root: Node, warning: JobWarning) -> Problem:
    _, position = messages.find(root, warning.path)
    rule = f"warning: {warning.rule}"
    return Problem(position, format_path(warning.path), rule, warning.suggestion)


def _make_model(root: Node, problems: list[Problem]) -> type[Job]:
    """Make a `Job` model that knows the installed operators and sinks that the file names."""
    installed: dict[str, dict[str, type[Model]]] = {}
    for section, path in _list_types(root):
        node, position = messages.find(root, path)
        name = None if node is None else node.value
        if not isinstance(name, str) or not is_installed(section, name):
            continue
        try:
            installed.setdefault(section, {})[name] = make_section_model(section, name)
        except RegistryError as error:
            advice = "mend or reinstall the package that brings it"
            problems.append(Problem(position, format_path(path), str(error), advice))
    return make_job_model({section: list(models.values()) for section, models in installed.items()})


def _list_types(root: Node) -> Iterator[tuple[str, Path]]:
    """List where the file names a type that may be an installed one."""
    for section in SECTIONS:
        node, _ = messages.find(root, (section,))
        if node is not None and isinstance(node.value, list):
            yield from ((section, (section, index, "type")) for index in range(len(node.value)))
        else:
            yield section, (section, "type")


def _validate(
    model: type[Job], root: Node, context: dict[str, Any]
) -> tuple[Job | None, list[Problem]]:
    job, errors = _attempt(model, root, context)
    texts = [_find_expanded_text(root, error) for error in errors]
    if any(texts):
        # What a reference brought looked like a number where a text belongs: it is a text.
        for node in texts:
            if node is not None:
                node.value = node.text
        job, errors = _attempt(model, root, context)
    if job is not None:
        return job, []
    problems = messages.describe_errors(
        model, root, [each for each in errors if not _is_derived(each)]
    )
    problems += find_exclusive_problems(model, root)
    for each in contradictions(_validate_sections(model, root, context)):
        _, position = messages.find(root, each.path)
        problems.append(Problem(position, format_path(each.path), each.rule, each.suggestion))
    return None, problems


def _attempt(
    model: type[Job], root: Node, context: dict[str, Any]
) -> tuple[Job | None, list[ErrorDetails]]:
    # As JSON, because strict models then take what YAML can write: lists for tuples, texts for
    # paths, decimals and enums.
    try:
        return model.model_validate_json(json.dumps(_build_data(model, root)), context=context), []
    except ValidationError as error:
        return None, error.errors(include_url=False)


def _build_data(model: type[Job], root: Node) -> Any:
    """The document as plain values; options of Spark and Kafka by their text, as written."""
    data: Any = root.data()
    for path, node in walk(root):
        if len(path) > 1 and _is_number(node.value) and _is_option_text(model, root, path):
            parent = data
            for part in path[:-1]:
                parent = parent[part]
            parent[path[-1]] = node.text
    return data


def _is_option_text(model: type[Job], root: Node, path: Path) -> bool:
    field_info = find_fields(model, root, path[:-2]).get(str(path[-2]))
    return field_info is not None and holds_option_texts(field_info)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _find_expanded_text(root: Node, error: ErrorDetails) -> Node | None:
    if error["type"] != "string_type":
        return None
    node, _ = messages.find(root, messages.find_path(root, error["loc"]))
    scalar = node is not None and not isinstance(node.value, dict | list | str)
    return node if node is not None and scalar and node.source is not None else None


def _is_derived(error: ErrorDetails) -> bool:
    """Is this a contradiction of sections? `contradictions` reports it again, with its position."""
    return error.get("ctx", {}).get("kind") == CONTRADICTION


def _validate_sections(model: type[Job], root: Node, context: dict[str, Any]) -> dict[str, Any]:
    """The sections that are valid by themselves, by name."""
    data = _build_data(model, root)
    sections: dict[str, Any] = {}
    for name, field_info in model.model_fields.items():
        if name not in data:
            if not field_info.is_required():
                sections[name] = field_info.get_default(call_default_factory=True)
            continue
        with suppress(ValidationError):
            sections[name] = _make_adapter(model, name).validate_json(
                json.dumps(data[name]), strict=True, context=context
            )
    return sections


@lru_cache(maxsize=64)
def _make_adapter(model: type[Job], name: str) -> TypeAdapter[Any]:
    """Validates one section without the others."""
    field_info = model.model_fields[name]
    return TypeAdapter(cast("Any", Annotated[field_info.annotation, field_info]))


def _find_literal_secrets(job: Job, root: Node, broken: set[Position]) -> list[Problem]:
    """Secrets by the model's word (a user's operator may have some) that the file holds."""
    problems = []
    for path, _ in _list_secrets(job):
        node, position = messages.find(root, path)
        if node is None:
            continue
        node.secret = True
        checked_by_name = holds_secret(str(path[-1]))
        written = node.source or node.text
        if not checked_by_name and position not in broken and not is_reference(written):
            problems.append(Problem(position, format_path(path), *SECRET_IN_FILE))
    return problems


def _list_secrets(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(value, SecretStr):
        yield path, value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name, field_info in type(value).model_fields.items():
            yield from _list_secrets(getattr(value, name), (*path, field_info.alias or name))
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _list_secrets(child, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield from _list_secrets(child, (*path, index))
