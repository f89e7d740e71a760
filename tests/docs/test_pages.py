"""Links, anchors and commands of the documentation are those that exist."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import unskew
from benchmarks.table_routes import by_bytes, by_cost, by_rows
from tests.support.blocks import blocks, prose
from unskew.config.errors import UsageError
from unskew.jobs.__main__ import COMMANDS, _parser

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "deploy").rglob("*.md"),
        *(ROOT / "dashboards").glob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
    ]
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
PUBLIC = {f"unskew.{name}" for name in unskew.__all__}
_LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^()\s]+)\)")
_INLINE = re.compile(r"`(unskew [^`]+)`")


def anchors(page: Path) -> set[str]:
    """Its headings as GitHub makes anchors of them."""
    used: dict[str, int] = {}
    names = set()
    for title in re.findall(r"^#{1,6}\s+(.*?)\s*$", prose(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        again = used.get(name, 0)
        used[name] = again + 1
        names.add(f"{name}-{again}" if again else name)
    return names


def broken_links(page: Path) -> list[str]:
    """Links to our own files and headings that lead nowhere."""
    broken = []
    for link in _LINK.findall(re.sub(r"`[^`]*`(?!\])", "", prose(page))):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            broken.append(f"{link}: no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            broken.append(f"{link}: no such heading")
    return broken


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_of_our_own_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_that_leads_nowhere_is_rejected(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](#one-two) [b](#three) [c](none.md) [d](page.md#one-two)\n")
    assert broken_links(page) == ["#three: no such heading", "none.md: no such file"]


def commands(page: Path) -> Iterator[tuple[str, bool]]:
    """Every `unskew ...` of a page, and whether it is whole: in prose, options may be left out."""
    for block in blocks(page):
        if block.language not in {"", "sh", "console", "shell", "bash"}:
            continue
        for line in re.sub(r"\\\n\s*", " ", block.text).splitlines():
            words = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if words.startswith("unskew "):
                yield words.partition("#")[0].strip(), True
    for command in _INLINE.findall(" ".join(prose(page).split())):
        yield command, False


def problem_of(command: str, whole: bool) -> str:
    """What is wrong with a command by the real parser; empty if it could be run."""
    words = shlex.split(command)[1:]
    words = list(before_the_shell(words))
    if not words or words[0] in {"...", "--help", "--version"}:
        return ""
    if words[0] not in COMMANDS:
        return f"unskew {words[0]}: no such command"
    try:
        _parser(words).parse_args([word for word in words if word != "..."])
    except UsageError as error:
        return "" if "arguments are required" in str(error) and not whole else str(error)
    return ""


def before_the_shell(words: list[str]) -> Iterator[str]:
    """The words before a pipe or redirection of the shell."""
    for word in words:
        if word in {"|", "&&", ";", "&"} or word.startswith((">", "<")):
            return
        yield word


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_is_one_that_exists(page: Path) -> None:
    problems = {command: problem_of(command, whole) for command, whole in commands(page)}
    assert {command: problem for command, problem in problems.items() if problem} == {}


def test_commands_that_do_not_exist_are_rejected() -> None:
    assert "no such command" in problem_of("unskew fly", whole=True)
    assert "--fast: unknown option" in problem_of("unskew lint --fast x.yaml", whole=True)
    assert "required" in problem_of("unskew run", whole=True)
    assert problem_of("unskew run", whole=False) == ""
    assert problem_of("unskew inspect CHECKPOINT | head", whole=True) == ""


def private_imports(code: str) -> list[str]:
    """What a program takes from this package that is not public."""
    private = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            private += [name for name in names if name.startswith("unskew.")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unskew"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            private += [name for name in names if name not in PUBLIC]
    return private


PROGRAMS = {
    **{
        f"{page.relative_to(ROOT)}:{block.line}": block.text
        for page in PAGES
        for block in blocks(page, "python")
    },
    **{
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for path in sorted((ROOT / "docs" / "examples").rglob("*.py"))
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_the_documentation_use_the_public_names_only(name: str) -> None:
    assert private_imports(PROGRAMS[name]) == []


def test_what_the_page_of_tables_shows_is_in_its_example() -> None:
    (shown,) = blocks(ROOT / "docs" / "tables.md", "python")
    example = (ROOT / "docs" / "examples" / "route_before_a_table.py").read_text("utf-8")
    parts = re.split(r"\n{2,}", shown.text.strip())
    assert len(parts) == 3
    assert [part for part in parts if f"\n{part}\n" not in example] == []


@pytest.mark.parametrize("table", [by_rows, by_bytes, by_cost])
@pytest.mark.slow
def test_the_page_of_tables_has_what_level_does(table: Callable[[], Iterator[str]]) -> None:
    lines = (ROOT / "docs" / "tables.md").read_text("utf-8").splitlines()
    assert [row for row in table() if row not in lines] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_shells_of_the_documentation_import_nothing_private(page: Path) -> None:
    assert [block.line for block in blocks(page, "sh") if "import unskew." in block.text] == []
    assert [block.line for block in blocks(page, "sh") if "from unskew." in block.text] == []


def test_a_private_import_is_rejected() -> None:
    assert private_imports("from unskew import route\nimport unskew\n") == []
    code = "import unskew.jobs.engine\nfrom unskew.config.loader import load\n"
    assert private_imports(code) == ["unskew.jobs.engine", "unskew.config.loader.load"]
    assert private_imports("from unskew import rout\n") == ["unskew.rout"]


def missing_files(page: Path) -> list[str]:
    """Files named in backquotes that are not there."""
    named = re.findall(r"`((?:jobs|config|grouping|deploy|docs|tests)/[\w./-]*)`", prose(page))
    return [name for name in named if not (ROOT / name).exists()]


def test_the_architecture_names_what_there_is(tmp_path: Path) -> None:
    assert missing_files(ROOT / "docs" / "ARCHITECTURE.md") == []
    (tmp_path / "page.md").write_text("`jobs/gone.py` `jobs/local/signals.py`\n")
    assert missing_files(tmp_path / "page.md") == ["jobs/gone.py"]
