import json
import zipfile
from pathlib import Path

import pytest

from unskew.jobs.checkpoint.merge_state import MergePartition, read_merge_state


def snapshot(folder: Path, version: int, keys: int, sizes: tuple[int, ...]) -> int:
    """A snapshot as Spark's RocksDB provider writes it; its own size."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [{"localFileName": f"{n}.sst", "sizeBytes": size} for n, size in enumerate(sizes)]
    with zipfile.ZipFile(folder / f"{version}.zip", "w") as archive:
        archive.writestr("CURRENT", "MANIFEST-000005")
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": files, "numKeys": keys}))
    return (folder / f"{version}.zip").stat().st_size


def test_rows_are_of_the_newest_snapshot_and_bytes_are_what_a_restart_loads(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "0" / "3"
    snapshot(folder, 9, 5, (1000,))
    size = snapshot(folder, 10, 7, (1000, 500))
    for version, length in ((9, 90), (10, 100), (11, 110)):
        (folder / f"{version}.changelog").write_bytes(b"x" * length)
    (tmp_path / "state" / "0" / "_metadata").mkdir()
    assert read_merge_state(str(tmp_path)) == (MergePartition(3, 7, 1500 + size + 110),)


def test_before_the_first_snapshot_only_the_changes_are_there(tmp_path: Path) -> None:
    for partition in (10, 2):
        folder = tmp_path / "state" / "0" / str(partition)
        folder.mkdir(parents=True)
        (folder / "1.changelog").write_bytes(b"x" * partition)
    assert read_merge_state(str(tmp_path)) == (
        MergePartition(2, None, 2),
        MergePartition(10, None, 10),
    )


def test_a_snapshot_that_spark_is_writing_is_not_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "0" / "0"
    folder.mkdir(parents=True)
    (folder / "4.zip").write_bytes(b"PK half")
    assert read_merge_state(str(tmp_path)) == (MergePartition(0, None, 7),)
    assert read_merge_state(str(tmp_path / "nothing")) == ()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_flipped_bit_of_a_snapshot_costs_its_figures_alone(
    tmp_path: Path, compression: int
) -> None:
    # Spark reads a snapshot's local headers, so it may well go on where these figures cannot.
    folder = tmp_path / "state" / "0" / "0"
    folder.mkdir(parents=True)
    path = folder / "1.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("metadata", 'v1\n{"sstFiles": [{"sizeBytes": 9}], "numKeys": 7}')
    whole = path.read_bytes()
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            (partition,) = read_merge_state(str(tmp_path))
            assert partition.rows in {7, None}, (position, bit)


@pytest.mark.parametrize("about", ["[]", "{}", '{"numKeys": {}}', '{"numKeys": 1, "sstFiles": 3}'])
def test_a_snapshot_about_which_nothing_is_said_has_no_figures(tmp_path: Path, about: str) -> None:
    folder = tmp_path / "state" / "0" / "0"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "1.zip", "w") as archive:
        archive.writestr("metadata", f"v1\n{about}")
    assert [each.rows for each in read_merge_state(str(tmp_path))] == [None]
