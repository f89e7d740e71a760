"""Checkpoints: of earlier versions, as files in tests/data/; what a journal has."""

import shutil
from pathlib import Path

from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal

_DATA = Path(__file__).resolve().parent.parent / "data"
REPORTS_OF_VERSION_3 = _DATA / "checkpoint_with_reports_of_version_3"
# The folder that the job which wrote it read from.
_INPUT = "/input"


def copy_checkpoint(source: Path, target: Path, input_folder: Path) -> None:
    """Copy a checkpoint of a job over files as if it had read from `input_folder`."""
    shutil.copytree(source, target)
    for path in (target / "unskew.json", *(target / "sources" / "0").iterdir()):
        path.write_text(path.read_text().replace(_INPUT, str(input_folder)))


def newest_state(journal: Journal, batch: int, source: int) -> Snapshot | None:
    """The newest state that `source` left before `batch`, from which it goes on."""
    return next((state for _, state in journal.read_states_before(batch, source)), None)
