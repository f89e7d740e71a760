"""A Python file of the user's own beside the job, or a module of his: found, imported, checked."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from unskew.config.models.base import Location
from unskew.grouping.options.broken_rules import make_rule_error


def _make_absolute(text: str, info: ValidationInfo) -> str:
    """Make the path of a Python file absolute; it is relative to the job file."""
    folder = (info.context or {}).get("folder", Path.cwd())
    path = Path(folder, text).absolute()
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise make_rule_error("a Python file, named as a module is", 'e.g. "file: scoring.py"')
    if path.stem in sys.stdlib_module_names:
        raise make_rule_error(
            f"a name that no module of Python's has, not {path.stem}", "rename it"
        )
    if not path.is_file():
        raise make_rule_error("a file that is there", "it is looked for beside the job file")
    return str(path)


UserFile = Annotated[Location, AfterValidator(_make_absolute)]


def load_user_module(file: str | None, module: str | None) -> ModuleType:
    """Import the file under its own name, or the module; the error says why it cannot be."""
    if (file is None) == (module is None):
        raise make_rule_error("one of file and module", "write file: scoring.py")
    try:
        return _load_file(Path(file)) if file else importlib.import_module(module or "")
    except Exception as error:  # noqa: BLE001 - a user's code may raise anything on import
        where = file or module
        if isinstance(error, SyntaxError) and error.lineno:
            where = f"{error.filename}:{error.lineno}"
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise make_rule_error(f"{where} cannot be imported: {reason}", "mend it") from None


def _load_file(path: Path) -> ModuleType:
    name = path.stem
    loaded = sys.modules.get(name)
    code = path.read_bytes()
    if loaded is not None and getattr(loaded, "__unskew_code__", None) == (str(path), code):
        return loaded
    if loaded is not None and not hasattr(loaded, "__unskew_code__"):
        raise ImportError(f"there is another module {name}; rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    module.__unskew_code__ = (str(path), code)  # type: ignore[attr-defined]
    return module
