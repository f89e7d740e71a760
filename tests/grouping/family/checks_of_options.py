"""Promises to those who read: options that say what is wrong with them, docstrings that are whole.

Each check takes a member and raises `AssertionError`; `tests/grouping/family/checks.py` has them
all.
"""

import doctest
import math
import re
import sys
from pathlib import Path

import yaml

from tests.grouping.family.members import (
    Checks,
    Member,
    batches,
    bounds_of,
    is_valid,
    members_at_bounds,
    members_of,
    numbers_of,
    outcome,
    play_all,
    record_steps,
)
from unskew.grouping.errors import GroupingError

check = Checks()
_AUTHOR = re.compile(r"\b[A-Z]\. ")


@check
def options_survive_yaml(member: Member) -> None:
    """All options, written to YAML and read again, are the same; also at their bounds."""
    params = member.kind.Params
    same_kind = [*members_of(member.kind), *members_at_bounds(member.kind)]
    for options in [member.options, *(other.options for other in same_kind)]:
        before = params(**dict(options))
        text = yaml.safe_dump(before.model_dump())
        after = params(**yaml.safe_load(text))
        assert after == before, f"{before!r} came back as {after!r}"


@check
def bad_options_are_named(member: Member) -> None:
    """An unknown option, a number out of bounds, NaN, another type: an error with its name."""
    name = member.kind.name
    problems = [("no_such_option", 1)]
    for field in member.kind.Params.model_fields:
        problems += [(field, wrong) for wrong in ([], {}, b"1", "no such thing", object())]
    for field, schema in numbers_of(member.kind).items():
        bounds = bounds_of(schema)
        assert bounds, f"{field}: a number without a bound"
        assert not is_valid(member.kind, {field: True}), f"{field}: takes true"
        problems += [(field, wrong) for wrong in (math.nan, math.inf, -math.inf, -1, True, "1")]
        problems += [(field, bounds[0] - 1), (field, bounds[0] - 1e-3)]
        if len(bounds) > 1:
            problems += [(field, bounds[1] + 1), (field, bounds[1] * 2)]
        if schema["type"] == "integer":
            problems += [(field, bounds[0] + 0.5), (field, f"{bounds[0]}")]
    for field, wrong in problems:
        options = tuple(option for option in member.options if option[0] != field)
        complaint = _complaint(Member(member.kind, (*options, (field, wrong))))
        assert complaint, f"{field}={wrong!r} is taken"
        assert f"{name}.{field}: " in complaint, f"{field}={wrong!r}: {complaint}"


def _complaint(member: Member) -> str:
    try:
        member.make()
    except GroupingError as error:
        return str(error)
    return ""


@check
def options_at_their_defaults_are_the_defaults(member: Member) -> None:
    """What no option says is what its default says, spelt out: there is no third value."""
    kind, defaults = member.kind, member.kind.Params().model_dump()
    spelt_out = tuple({**defaults, **dict(member.options)}.items())
    steps, _ = record_steps(member.make(), batches(count=2))
    said, silent = Member(kind, spelt_out).make(), member.make()
    assert (play_all(said, steps) == play_all(silent, steps)).all(), "other routes"
    assert outcome(said) == outcome(silent), "another state"


@check
def options_have_a_description(member: Member) -> None:
    """Every option, and the options as a whole, say what they are for."""
    assert (member.kind.Params.__doc__ or "").strip(), "the options have no docstring"
    schema = member.kind.Params.model_json_schema()
    for field, described in schema.get("properties", {}).items():
        assert described.get("description", "").strip(), f"{field}: no docstring"


@check
def the_docstring_is_whole(member: Member) -> None:
    """The idea, what it costs in state, departures, the paper's symbols, a doctest, a reference."""
    text = sys.modules[member.kind.__module__].__doc__ or ""
    paragraphs = text.strip().split("\n\n")
    assert paragraphs[0].endswith("."), "the first line is a sentence, alone"
    assert len(paragraphs) > 1, "the idea is missing"
    assert not paragraphs[1].startswith((">>>", "|", "Departures", "Reference")), "no idea"
    assert re.search(r"(?i)\bstate\b|\bbounds?\b", text), "nothing about the state and its bound"
    assert re.search(r"(?m)^\W*Departures", text), "no Departures"
    assert re.search(r"(?m)^>>> ", text), "no doctest"
    reference = paragraphs[-1]
    assert reference.startswith("Reference: "), "the last paragraph is the Reference"
    if _AUTHOR.search(reference):
        assert re.search(r"(?m)^\| .* \|\n\|---\|---\|$", text), "no table of the paper's symbols"


@check
def the_doctest_passes(member: Member) -> None:
    """Every example of the grouping's module is true."""
    tried = doctest.testmod(sys.modules[member.kind.__module__], verbose=False)
    assert tried.attempted > 0, "there is no example"
    assert tried.failed == 0, f"{tried.failed} of {tried.attempted} examples fail"


@check
def one_name_everywhere(member: Member) -> None:
    """The name in YAML is that of the file, and its tests are found by it."""
    name = member.kind.name
    module = sys.modules[member.kind.__module__]
    assert module.__name__ == f"unskew.grouping.algorithms.{name}", (
        f"{name} is in {module.__name__}"
    )
    root = Path(str(module.__file__)).resolve().parents[2]
    tests = root / "tests" / "grouping" / "algorithms"
    assert (tests / f"test_{name}.py").is_file(), f"there is no test_{name}.py"
    assert member.kind.Params.__name__ == f"{member.kind.__name__}Params"
    assert (member.kind.__doc__ or "").strip(), "the class has no docstring"
