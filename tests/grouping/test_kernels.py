"""Kernels are functions that import numba when they are first called."""

import ast
import copy
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import Kernel, borrowing_kernel, kernel

_LISTED = "print(sorted({'numba', 'llvmlite'} & set(sys.modules)))"


def _loaded(code: str) -> str:
    """Which of numba's packages `code` has imported in a process of its own."""
    command = [sys.executable, "-c", f"import sys\n{code}\n{_LISTED}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# Of the commands that read options, `tests/config/test_imports.py` shows it.
def test_options_are_read_without_numba(root: Path) -> None:
    algorithms = (path.stem for path in (root / "grouping" / "algorithms").glob("[a-z]*.py"))
    modules = [f"unskew.grouping.algorithms.{name}" for name in algorithms]
    assert len(modules) == 14
    modules += ["unskew.config.lint", "unskew.config.explain", "unskew.config.json_schema"]
    assert _loaded("\n".join(f"import {module}" for module in modules)) == "[]"


def test_the_first_call_of_a_kernel_imports_numba() -> None:
    code = "from unskew.grouping.registry import create\ncreate('key', partitions=2)"
    routed = code + ".route(__import__('numpy').arange(2, dtype='uint64'))"
    assert _loaded(routed) == "['llvmlite', 'numba']"


def test_a_kernel_looks_like_its_function() -> None:
    assert mix64.__name__ == "mix64"
    assert mix64.__module__ == "unskew.grouping.hashing"
    assert "MurmurHash3" in (mix64.__doc__ or "")
    with np.errstate(over="ignore"):
        assert mix64(np.uint64(7)) == mix64.function(np.uint64(7))


def test_a_kernel_is_pickled_by_its_name() -> None:
    assert mix64.__reduce__() == "mix64"
    assert copy.copy(mix64) is mix64
    assert copy.deepcopy({"hash": mix64})["hash"] is mix64


def test_a_borrowing_kernel_may_hand_on_arrays_and_tuples_but_make_none() -> None:
    columns = _Columns(np.arange(4), np.arange(4))
    _add_up(columns)
    assert columns.sums.tolist() == [0, -1, -3, -6]
    with pytest.raises(NumbaError, match=r"NRT required|_allocate"):
        _copied(columns)


class _Columns(NamedTuple):
    values: NDArray[np.int64]
    sums: NDArray[np.int64]


@borrowing_kernel
def _add_up(columns: _Columns) -> None:
    for i in range(1, columns.values.size):
        _add_one(columns, i)
    _negate(columns)


@kernel
def _negate(columns: _Columns) -> None:
    columns.sums[:] = -columns.sums


@borrowing_kernel
def _add_one(columns: _Columns, i: int) -> None:
    columns.sums[i] = columns.sums[i - 1] + columns.values[i]


@borrowing_kernel
def _copied(columns: _Columns) -> None:
    columns.sums[:] = columns.values.copy()


def test_threads_share_what_numba_made() -> None:
    compiled: Kernel[[int], int] = kernel(lambda value: value + 1)
    start = threading.Barrier(4)
    made: list[object] = []

    def use() -> None:
        start.wait()
        made.append(compiled.dispatcher)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len({id(dispatcher) for dispatcher in made}) == 1


def test_what_a_kernel_uses_of_ours_is_in_the_digest_of_the_machine_code(root: Path) -> None:
    trees = {
        "unskew." + ".".join(path.relative_to(root).with_suffix("").parts): ast.parse(
            path.read_text()
        )
        for path in (root / "grouping").rglob("*.py")
    }
    with_kernels = {module for module, tree in trees.items() if _kernels_of(tree)}
    assert len(with_kernels) > 20
    outside = {
        (module, name)
        for module in with_kernels
        for name, origins in _imported(trees[module]).items()
        if name in _used_by_kernels(trees[module]) and not origins & with_kernels
    }
    assert outside == set()


def _kernels_of(tree: ast.Module) -> list[ast.FunctionDef]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = {"kernel", "borrowing_kernel"}
    return [each for each in functions if names & set(map(ast.unparse, each.decorator_list))]


def _imported(tree: ast.Module) -> dict[str, set[str]]:
    """The names that a module imports from ours: of which module, or which module they are."""
    return {
        alias.asname or alias.name: {node.module, f"{node.module}.{alias.name}"}
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unskew.")
        for alias in node.names
    }


def _used_by_kernels(tree: ast.Module) -> set[str]:
    """The names in the bodies of kernels and in the module's constants, but for those of types."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    constants = [value for value in values if not isinstance(value, ast.Subscript)]
    bodies = [statement for function in _kernels_of(tree) for statement in function.body]
    return {
        node.id
        for part in [*filter(None, constants), *bodies]
        for node in ast.walk(part)
        if isinstance(node, ast.Name)
    }
