"""Whoever may not write to the folder above may not read what is made in it."""

import os
from pathlib import Path

import pytest

from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.private_files import make_folder_within, write_private


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize(
    ("above", "within"),
    [
        (0o700, 0o700),
        (0o755, 0o700),
        (0o775, 0o770),
        (0o2770, 0o2770),
        (0o777, 0o777),
        (0o1777, 0o700),
    ],
)
def test_a_journal_is_as_open_as_its_checkpoint_is_to_writers(
    above: int, within: int, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    checkpoint.chmod(above)
    journal = Journal(str(checkpoint / "unskew"))
    journal.write_routing(3, 0)
    assert mode(checkpoint / "unskew") == within
    assert mode(checkpoint / "unskew" / "000000000003") == within


def test_folders_that_are_there_keep_their_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o751)
    make_folder_within(tmp_path)
    assert mode(tmp_path) == 0o751


def test_a_private_file_replaces_nothing_and_follows_no_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("of somebody else")
    link.symlink_to(victim)
    for name in (victim, link):
        with pytest.raises(FileExistsError):
            write_private(name, "secret")
    umask = os.umask(0)
    try:
        write_private(tmp_path / "new", "secret")
    finally:
        os.umask(umask)
    assert mode(tmp_path / "new") == 0o600
    assert victim.read_text() == "of somebody else"
