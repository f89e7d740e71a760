"""Files that ship beside the code: in the checkout's `deploy/`, or in the wheel's `jobs/data/`."""

from pathlib import Path

_JOBS = Path(__file__).resolve().parent.parent


def resource(name: str) -> Path:
    """The path of a shipped file."""
    packaged = _JOBS / "data" / name
    return packaged if packaged.exists() else _JOBS.parent / "deploy" / name
