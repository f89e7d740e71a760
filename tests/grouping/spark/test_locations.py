"""Paths and URIs as Spark reads them, and a journal on what is no local disk."""

import os
from pathlib import Path

import pytest
from pyarrow import fs

from tests.support.checkpoints import newest_state
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.locations import open_location


@pytest.mark.parametrize("name", ["plain", "with blank", "100%25", "a:b"])
@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_local_uri_is_the_path_as_it_is_written(tmp_path: Path, prefix: str, name: str) -> None:
    system, path = open_location(f"{prefix}{tmp_path}/{name}/")
    assert isinstance(system, fs.LocalFileSystem)
    assert path == f"{tmp_path}/{name}"


def test_a_relative_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_location("there")[1] == f"{Path.cwd()}/there"
    assert open_location("a/b:c/d")[1] == f"{Path.cwd()}/a/b:c/d"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("wasbs://c@a.net/x", "wasbs: is not a scheme that can be opened; use a path, file:, s3a:"),
        ("file://host/x", "file: URIs name no host (got file://host/x); write file:/PATH"),
    ],
)
def test_what_cannot_be_opened_is_one_line(location: str, expected: str) -> None:
    with pytest.raises(OSError, match=r"^[^\n]+$") as caught:
        open_location(location)
    assert str(caught.value).startswith(expected)


def test_hdfs_without_hadoop_is_one_line() -> None:
    if {"HADOOP_HOME", "ARROW_LIBHDFS_DIR"} & set(os.environ):
        pytest.skip("this machine has Hadoop")
    with pytest.raises(OSError, match=r"^hdfs: cannot be opened: [^\n]+ \(it needs [^\n]+\)$"):
        open_location("hdfs://127.0.0.1:1/x")


def test_a_journal_on_a_store_without_links_is_written_once_as_well(tmp_path: Path) -> None:
    # No LocalFileSystem to the journal, so it takes the way of object stores.
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    journal = Journal("store", [(store, "journal")])

    def state(seed: int) -> Snapshot:
        return Snapshot("key", 1, 4, seed, {})

    for batch in range(3):
        assert journal.write_state(batch, 0, state(batch))
    assert not journal.write_state(2, 0, state(9))
    read = newest_state(journal, 3, 0)
    assert read is not None
    assert read.seed == 2
    journal.purge(before=1)
    journal.drop_from(2)
    assert journal.batches() == [1]
    assert journal.sum_size_bytes() == len(state(1).to_bytes())
