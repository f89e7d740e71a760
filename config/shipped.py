"""The jobs that ship inside the package, so that they are there without a checkout."""

from pathlib import Path

JOBS_FOLDER = Path(__file__).parent / "jobs"
SCHEMA_FILE = Path(__file__).parent / "schema.json"


def list_shipped_names() -> list[str]:
    """The shipped jobs by name."""
    return sorted(path.stem for path in JOBS_FOLDER.glob("*.yaml"))


def resolve_job(path_or_name: str | Path) -> Path:
    """Resolve a path, or the name of a shipped job, to the file."""
    path = Path(path_or_name)
    bare = path.parent == Path() and not path.suffix
    if bare and not path.exists() and path.name in list_shipped_names():
        return JOBS_FOLDER / f"{path.name}.yaml"
    return path
