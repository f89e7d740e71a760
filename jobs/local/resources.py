"""Files that ship beside the code.

In a checkout they are in `deploy/` and `docs/`, in the wheel in `jobs/data/`.
"""

from pathlib import Path

_JOBS = Path(__file__).resolve().parent.parent


def find_resource(name: str, folder: str = "deploy") -> Path:
    """Find the path of a shipped file, which is in this folder of a checkout."""
    packaged = _JOBS / "data" / name
    return packaged if packaged.exists() else _JOBS.parent / folder / name
