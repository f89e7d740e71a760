"""Names that this repository does not use: bare import roots, and words with too many meanings."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOTS = ("jobs", "config", "grouping")
# As whole names: `write_one` is none of them.
BANNED = {"place", "places", "found", "one", "told", "facts", "linger", "rehearsal"}
BANNED |= {"bad", "malformed", "faults", "refused", "letters", "owned", "outsideerror"}
PRODUCT = ("jobs/", "config/", "grouping/", "unskew/", "deploy/", "dashboards/", "benchmarks/")
PRODUCT += ("docs/",)
# As parts of names in the product: `write_refused`, `BadRecord`, `--bad` and `oddState` have one.
BANNED_PARTS = {"bad", "malformed", "faults", "faulty", "refused", "untaken", "odd", "found"}
BANNED_PARTS |= {"law", "laws", "facts", "linger", "owned", "place", "places", "rehearsal", "told"}
BANNED_PARTS |= {"fault", "refuse", "refuses", "refusal", "refusals", "said", "tell", "tells"}
# A dead letter is no letter by another name.
ONLY_AFTER_DEAD = {"letter", "letters"}
# Names of Python, Spark, Arrow and CSS, a number that is odd, and a signal that dashboards show.
EXCEPTIONS = {
    "BadGzipFile",
    "BadZipFile",
    "FileNotFoundError",
    "NotFound",
    "allow_not_found",
    "_ODD",
    "letter-spacing",
    "synopsis_refused",
}
BANNED_PHRASES = ("signs? of life", "somebody", "nobody", "someone", "held to the law")
BANNED_PHRASES += ("(?:bad|broken|faulty) records?", "could not take")
# Texts that are read twice: an old word, a number that is not there, a sentence without its fact.
BANNED_PHRASES += ("anew", "in vain", "(?:here|there) twice", "is no such thing", "on use(?=:)")
BANNED_PHRASES += ("takes? no notice", "makes? no sense", "in (?:its|their) stead", "it never is")
BANNED_PHRASES += ("(?:after|about|at least|at most|for|only) so (?:many|much|long)",)
BANNED_PHRASES += ("so (?:many|much) at most", "told (?:to|of|by|beforehand)", "do not need us")
# Docstrings of functions that name a thing and not what is done with it: `The page.`
_VERBLESS = re.compile(r"(?:The|An?|It|Its|Those|Both|All|None|One)(?: [^\s.]+){0,2}\.")
_THE_SAME = re.compile(r"The same,")
PHRASES_ALLOWED_IN = ("tests/", "benchmarks/results/", "CHANGELOG.md")
WITH_BARE_NAMES = ("tests/test_names.py", "tests/test_wheel.py")
"""Tests with programs of users, who may have modules of these names."""

_BARE = "|".join(ROOTS)
_RUN = re.compile(rf"(?<![\w-])-m[\s,\"']+(?:{_BARE})\b")
_IMPORTED = re.compile(
    rf"(?:^|[;>\"'])\s*(?:from (?:{_BARE})(?:\.\w+)* import|import (?:{_BARE})\b)", re.MULTILINE
)
_ENTRY_POINT = re.compile(rf"(?<![\w./-])(?:{_BARE})(?:\.\w+)*:[A-Za-z_]\w*\b(?! )")
_MODULE = re.compile(rf"(?:{_BARE})(?:\.\w+)+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_JS_SAID = re.compile(r"//[^\n]*|/\*.*?\*/|'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`", re.DOTALL)
_JS_TEMPLATE = re.compile(r"`[^`]*`", re.DOTALL)
_JS_FILLED = re.compile(r"\$\{([^}]*)\}")
_CSS_SAID = re.compile(r"/\*.*?\*/", re.DOTALL)
_PHRASE = re.compile(rf"\b(?:{'|'.join(BANNED_PHRASES)})\b".replace(" ", r"\s+"), re.IGNORECASE)


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """The tracked texts by their names."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    for name in listed.splitlines():
        path = root / name
        if path.is_file() and b"\0" not in path.read_bytes():
            yield name, path.read_text()


def bare_names(text: str) -> list[str]:
    """Where a text imports, runs or names as an entry point a module of ours by its bare name."""
    patterns = (_RUN, _IMPORTED, _ENTRY_POINT)
    return [match.group(0).strip() for each in patterns for match in each.finditer(text)]


def bare_strings(text: str, root: Path) -> list[str]:
    """Strings of a Python file that are a module of ours, or something in it, by the bare name."""
    return [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _MODULE.fullmatch(node.value)
        and _is_module(node.value, root)
    ]


def _is_module(name: str, root: Path) -> bool:
    first, _, second = name.partition(".")
    second = second.partition(".")[0]
    folder = root / first
    return (folder / f"{second}.py").is_file() or (folder / second / "__init__.py").is_file()


def _allowed(name: str) -> set[str]:
    """What a file may say all the same: the storm's faults are faults, not rejected records."""
    return {"faults"} if name.startswith("tests/storm/") else set()


def identifiers(text: str) -> set[str]:
    """What a Python file names: variables, arguments, functions, classes, attributes, modules."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "arg", "name", "attr", "asname", "rest"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                names.add(value)
        if isinstance(node, ast.Global | ast.Nonlocal):
            names.update(node.names)
    return names


def dict_keys(text: str) -> set[str]:
    """Keys of a Python file's dictionaries that are names, such as those of its JSON."""
    keys = [
        key.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant)
    ]
    return {key for key in keys if isinstance(key, str) and key.isidentifier()}


def names_in(file: str, text: str) -> set[str]:
    """What a file of Python, YAML, or of the live page names, the file itself included."""
    stem = {Path(file).stem}
    if file.endswith(".py"):
        return identifiers(text) | dict_keys(text) | stem
    if file.endswith(".js"):
        text = _JS_TEMPLATE.sub(lambda template: " ".join(_JS_FILLED.findall(template[0])), text)
        return set(re.findall(r"[A-Za-z_$][\w$]*", _JS_SAID.sub(" ", text))) | stem
    if file.endswith(".css"):
        return set(re.findall(r"[A-Za-z_-][\w-]*", _CSS_SAID.sub(" ", text))) | stem
    if file.endswith(".html"):
        values = re.findall(r"(?:class|for|id|name)=\"([^\"]*)\"", text)
        return set(" ".join(values).split()) | stem
    if file.endswith((".yaml", ".yml")):
        return set(re.findall(r"^\s*(?:- )?([A-Za-z_][\w-]*):", text, re.MULTILINE)) | stem
    return set()


def banned_parts(name: str) -> set[str]:
    """The parts of a name that the product does not use."""
    parts = {part.lower() for part in _PART.findall(name)}
    banned = BANNED_PARTS if "dead" in parts else BANNED_PARTS | ONLY_AFTER_DEAD
    return set() if name in EXCEPTIONS else parts & banned


def find_verbless(text: str) -> list[str]:
    """Docstrings of functions without a verb, and any that begins with `The same,`."""
    texts = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            names_a_thing = isinstance(node, ast.FunctionDef) and not _is_value(node)
            if _THE_SAME.match(first) or (names_a_thing and _VERBLESS.fullmatch(first)):
                texts.append(first)
    return texts


def _is_value(function: ast.FunctionDef) -> bool:
    """Is it read like a variable: a property or a fixture?"""
    decorators = {ast.unparse(each).partition("(")[0] for each in function.decorator_list}
    return bool(decorators & {"property", "cached_property", "pytest.fixture"})


def banned_phrases(text: str) -> list[str]:
    """What a text says that our prose, help and messages do not."""
    return _PHRASE.findall(text)


def test_nothing_of_ours_is_named_without_the_package(root: Path) -> None:
    bare = []
    for name, text in _files(root):
        if name in WITH_BARE_NAMES:
            continue
        names = bare_names(text)
        if name.endswith(".py"):
            names += bare_strings(text, root)
        bare += [f"{name}: {each}" for each in names]
    assert bare == []


@pytest.mark.parametrize(
    "text",
    [
        "from jobs.engine import source",
        "    import config",
        "exec python -m jobs run",
        '["python", "-m", "jobs"]',
        'word_count = "jobs.operators.word_count:WordCount"',
        "`python -c 'import grouping'`",
    ],
)
def test_a_bare_name_is_seen(text: str) -> None:
    assert bare_names(text)


@pytest.mark.parametrize(
    "text",
    [
        "from unskew.jobs.engine import source",
        "python -m unskew.jobs",
        'python -m pytest -m "not slow" jobs',
        "the section grouping.level: what it says",
        "import groupings",
    ],
)
def test_other_words_are_no_bare_names(text: str) -> None:
    assert bare_names(text) == []


def test_a_module_in_a_string_is_seen(root: Path) -> None:
    text = """patch("jobs.engine.service._POLL", "grouping.type", "unskew.jobs.engine")"""
    assert bare_strings(text, root) == ["jobs.engine.service._POLL"]


def test_banned_names_are_not_used(root: Path) -> None:
    used = [
        f"{name}: {identifier}"
        for name, text in _files(root)
        if name.endswith(".py")
        for identifier in sorted({*identifiers(text), Path(name).stem})
        if identifier.strip("_").lower() in BANNED - _allowed(name)
    ]
    assert used == []


@pytest.mark.parametrize(
    "text",
    [
        "place = 1",
        "def f(place): ...",
        "f(place=1)",
        "self.place",
        "class Place: ...",
        "def _place(): ...",
        "import a as place",
        "from a import place",
        "try: ...\nexcept E as place: ...",
        "match a:\n  case [*place]: ...",
        "match a:\n  case {**place}: ...",
        "match a:\n  case place: ...",
    ],
)
def test_a_name_is_seen_wherever_it_is_bound(text: str) -> None:
    assert {name.strip("_").lower() for name in identifiers(text)} & BANNED == {"place"}


def test_no_name_in_the_product_has_a_banned_part(root: Path) -> None:
    used = [
        f"{file}: {name}"
        for file, text in _files(root)
        if file.startswith(PRODUCT)
        for name in sorted(names_in(file, text))
        if banned_parts(name)
    ]
    assert used == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.py", "_set_found = 1"),
        ("a.py", "CSV_TYPES_REFUSED = 1"),
        ("a.py", "class BadRecord: ..."),
        ("a.py", "def check_law(): ..."),
        ("a.py", "fault = _LETTER_BYTES = 1"),
        ("a.py", "{'place': 1}"),
        ("a.py", "def tell_compiling(): ..."),
        ("told_errors.py", ""),
        ("a.js", "// why\nlet refused = 0;"),
        ("a.js", "const oddState = 1;"),
        ("a.js", "say(`no ${refusals.length} 'of' them`);"),
        ("a.html", '<p id="state" class="note bad">good</p>'),
        ("a.yaml", "job:\n  - told: 1"),
        ("a.css", ".odd #state { color: red; }"),
        ("a.css", ":root { --bad: red; }"),
    ],
)
def test_a_banned_part_is_seen(file: str, text: str) -> None:
    assert any(banned_parts(name) for name in names_in(file, text))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.py", "lawful = foundation = badge = write_one = dead_letters = DeadLetter = 1"),
        ("a.html", '<p id="note">told in place</p>'),
        ("a.yaml", "# a bad place: none\nname: told"),
        ("a.py", "import zipfile\nzipfile.BadZipFile, FileNotFoundError"),
        ("a.py", '"""Zipf\'s law, found in place."""'),
        ("a.js", "say('found'); // told to screen readers"),
        ("a.css", "/* bad */ .stale { color: red; }"),
    ],
)
def test_other_names_have_no_banned_part(file: str, text: str) -> None:
    assert not any(banned_parts(name) for name in names_in(file, text))


def test_prose_help_and_messages_have_no_banned_phrase(root: Path) -> None:
    said = [
        f"{file}: {phrase}"
        for file, text in _files(root)
        if not file.startswith(PHRASES_ALLOWED_IN)
        for phrase in banned_phrases(text)
    ]
    assert said == []


@pytest.mark.parametrize(
    "text",
    [
        "'The query gives no sign of life. '",
        "help='a file that somebody repaired'",
        "it is held\nto the law",
        "# Bad records as files",
        "a total that a sink could not take",
        "Nobody waits.",
        "the query was started anew",
        "records worked on in vain",
        "'the column is there twice'",
        "# On use: --help must not wait.",
        'help="end after so many records"',
        "list so many at most",
        "a LookupError if that is no such thing",
    ],
)
def test_a_banned_phrase_is_seen(text: str) -> None:
    assert banned_phrases(text)


@pytest.mark.parametrize(
    "text", ["so many keys that tables grow", "Renewed.", "how it was told apart", "twice there"]
)
def test_other_texts_have_no_banned_phrase(text: str) -> None:
    assert not banned_phrases(text)


def test_docstrings_of_functions_say_what_is_done(root: Path) -> None:
    verbless = [
        f"{file}: {docstring}"
        for file, text in _files(root)
        if file.endswith(".py") and file.startswith((*PRODUCT, "tests/support/", "tests/storm/"))
        for docstring in find_verbless(text)
    ]
    assert verbless == []


@pytest.mark.parametrize(
    "text",
    [
        'def write_page():\n    """The page."""',
        'def write_page():\n    """The page\'s text."""',
        'def stop():\n    """It never is.\n\n    More.\n    """',
        'class Sums:\n    """The same, by key."""',
    ],
)
def test_a_docstring_without_a_verb_is_seen(text: str) -> None:
    assert find_verbless(text)


@pytest.mark.parametrize(
    "text",
    [
        'def write_page():\n    """Write the page."""',
        '@property\ndef page(self):\n    """The page\'s text."""',
        'class Page:\n    """The page."""',
        'def done():\n    """A batch is done."""',
    ],
)
def test_other_docstrings_are_taken(text: str) -> None:
    assert find_verbless(text) == []
