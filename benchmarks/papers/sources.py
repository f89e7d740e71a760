"""Digests of the code that a simulated figure follows from: what a kept result is valid for."""

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b, file_digest
from pathlib import Path

from unskew.grouping.simulation.specs import parse_spec
from unskew.grouping.simulation.streams.formats import FORMATS
from unskew.grouping.simulation.streams.traces import FileTrace

ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = "unskew.grouping"
_SIMULATOR = "unskew.grouping.simulation.meters.streams"
_REGISTRY = "unskew.grouping.registry"
"""It imports every grouping; a figure follows from one."""


@cache
def digest_of(grouping: str) -> str:
    """Changes with the sources of this grouping, of the simulator, and of all that they import."""
    modules = _imported(f"{_PACKAGE}.algorithms.{grouping}") | _imported(_SIMULATOR)
    total = blake2b(digest_size=8)
    for module in sorted(modules):
        total.update(module.encode())
        total.update(_parse(module).encode())
    return total.hexdigest()


def sources_of(grouping: str, trace: str) -> str:
    """What a run's figures follow from: the code, and the content of the file it reads, if any."""
    path = _file_of(trace)
    return digest_of(grouping) + (f"-{_digest_of_file(path)}" if path else "")


def _file_of(trace: str) -> str | None:
    name, _, rest = trace.partition(":")
    if name == FileTrace.name:
        return rest
    return str(parse_spec("trace", trace)[1]["path"]) if name in FORMATS else None


@cache
def _digest_of_file(path: str) -> str:
    with Path(path).open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=8)).hexdigest()


@cache
def _imported(module: str) -> frozenset[str]:
    seen, waiting = {module}, [module]
    while waiting:
        for name in _imports(_path(waiting.pop())):
            if name not in seen and name != _REGISTRY and _path(name).is_file():
                seen.add(name)
                waiting.append(name)
    return frozenset(seen)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            yield str(node.module)
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith(_PACKAGE))


def _path(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _parse(module: str) -> str:
    # Comments and docstrings change no figure.
    tree = ast.parse(_path(module).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
