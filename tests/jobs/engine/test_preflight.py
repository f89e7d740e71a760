"""What a start refuses so that nothing that was written before is lost."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.oracles import WINDOWS
from tests.support.running.in_process import job_over
from unskew.config.errors import ExternalError
from unskew.grouping.snapshot import Snapshot
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.checkpoint.identity import write_identity
from unskew.jobs.engine.preflight import check
from unskew.jobs.query.pipeline import Pipeline


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
    return Pipeline(job, open_journal(job))


def test_a_new_checkpoint_does_not_replace_the_batches_of_another(tmp_path: Path) -> None:
    check(pipeline(tmp_path, "first"))
    for folder in ("bad", "out"):
        (tmp_path / folder / "batch_id=0").mkdir(parents=True)
    with pytest.raises(ExternalError) as error:
        check(pipeline(tmp_path, "second"))
    rule = (
        "holds batches of another checkpoint, which this new one, counting from 0, would replace;"
        " name another folder, or move them away"
    )
    assert list(error.value.problems) == [
        f"sinks[1].path: {tmp_path}/out: {rule}",
        f"dead_letters.path: {tmp_path}/bad: {rule}",
    ]

    # The checkpoint that wrote them goes on.
    write_identity(pipeline(tmp_path, "first").job)
    log = tmp_path / "checkpoints" / "first" / "offsets"
    log.mkdir(parents=True)
    (log / "0").write_text("")
    check(pipeline(tmp_path, "first"))


def test_every_state_that_the_next_batch_needs_is_checked(tmp_path: Path) -> None:
    started = pipeline(tmp_path, "damaged")
    state = Snapshot("key", 1, 3, 0, {"active": np.ones(3, np.uint8)})
    for batch in range(4):
        started.journal.write_state(batch, 0, state)
    # The newest of a source that had nothing to route since.
    started.journal.write_state(0, 1, state)
    commits = Path(started.job.checkpoint) / "commits"
    commits.mkdir()
    (commits / "3").touch()
    check(started)
    batch = Path(started.journal.location) / "000000000000"
    for source in (0, 1):
        (batch / f"source-0000{source}.state").write_bytes(b"garbage")
    with pytest.raises(ExternalError) as error:
        check(started)
    (line,) = error.value.problems
    assert line.startswith(f"journal: {batch}/source-00001.state: cannot be read; routing cannot")


def test_a_folder_that_is_named_by_a_uri_is_private_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    job = job_over(
        {"type": "files", "path": str(tmp_path / "in")},
        tmp_path,
        "uri",
        dead_letters={"type": "files", "path": f"file://{tmp_path}/bad"},
    )
    check(Pipeline(job, open_journal(job)))
    assert (tmp_path / "bad").stat().st_mode & 0o777 == 0o700


def test_what_holds_records_is_made_private_and_results_are_the_users(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("of somebody else")
    started = pipeline(tmp_path, "private")
    umask = os.umask(0o022)
    try:
        check(started)
    finally:
        os.umask(umask)
    modes = {
        name: (tmp_path / name).stat().st_mode & 0o777
        for name in ("checkpoints/private", "bad", "out")
    }
    assert modes == {"checkpoints/private": 0o700, "bad": 0o700, "out": 0o755}
    for folder in ("out", "bad", "checkpoints/private"):
        (tmp_path / folder / ".unskew-probe").symlink_to(victim)
    check(started)
    assert victim.read_text() == "of somebody else"
