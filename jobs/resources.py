"""Files that ship beside the code: in the checkout's `deploy/`, or in the wheel's `jobs/data/`."""

from pathlib import Path

_HERE = Path(__file__).parent


def resource(name: str) -> Path:
    """The path of a shipped file."""
    packaged = _HERE / "data" / name
    return packaged if packaged.exists() else _HERE.parent / "deploy" / name
