"""What a start refuses so that nothing that was written before is lost."""

from pathlib import Path

import pytest

from config.errors import OutsideError
from jobs.identity import sign
from jobs.pipeline import Pipeline, journal_of
from jobs.preflight import check
from tests.jobs.in_process import job_over
from tests.jobs.oracles import WINDOWS


def pipeline(folder: Path, name: str) -> Pipeline:
    """A job whose results and dead letters are files."""
    (folder / "in").mkdir(exist_ok=True)
    job = job_over(
        {"type": "files", "path": str(folder / "in")},
        folder,
        name,
        window=WINDOWS["tumbling"],
        lateness="10 s",
        merge={"partitions": 2, "output": "append"},
        sinks=[{"type": "console"}, {"type": "files", "path": str(folder / "out")}],
    )
    return Pipeline(job, journal_of(job))


@pytest.mark.parametrize("progress", ["offsets", "unskew-refused/offsets"])
def test_a_new_checkpoint_does_not_replace_the_batches_of_another(
    tmp_path: Path, progress: str
) -> None:
    check(pipeline(tmp_path, "first"))
    for folder in ("bad", "out"):
        (tmp_path / folder / "batch_id=0").mkdir(parents=True)
    with pytest.raises(OutsideError) as error:
        check(pipeline(tmp_path, "second"))
    rule = (
        "holds batches of another checkpoint, which this new one, counting from 0, would replace;"
        " name another folder, or move them away"
    )
    assert list(error.value.problems) == [
        f"sinks.1.path: {tmp_path}/out: {rule}",
        f"dead_letters.path: {tmp_path}/bad: {rule}",
    ]

    # The checkpoint that wrote them goes on.
    sign(pipeline(tmp_path, "first"))
    place = tmp_path / "checkpoints" / "first" / progress
    place.mkdir(parents=True)
    (place / "0").write_text("")
    check(pipeline(tmp_path, "first"))
