"""A writer that is cut off leaves nothing under the file's name, wherever the journal is."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from tests.support.checkpoints import newest_state
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal

LOCAL = fs.LocalFileSystem()
STATE = Snapshot("key", 1, 4, 0, {"active": np.full(4, 1, np.uint8)})


class _Cut(io.RawIOBase):
    """A file that takes half of what is written to it, and then is gone."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = Path(path).open("wb")  # noqa: SIM115 - closed below

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(bytes(data)[: len(data) // 2])
        raise OSError("gone")

    def close(self) -> None:
        self._file.close()
        super().close()


def _passed_on(name: str) -> Callable[..., Any]:
    def call(_: object, *given: Any) -> Any:
        return getattr(LOCAL, name)(*given)

    return call


def disk(*, cut: bool) -> fs.PyFileSystem:
    """The local disk as a filesystem of another kind: without hard links, and with cut writes."""
    names = fs.FileSystemHandler.__abstractmethods__
    methods: dict[str, Any] = {name: _passed_on(name) for name in names}
    methods["get_file_info_selector"] = _passed_on("get_file_info")
    methods["get_type_name"] = lambda _: "hdfs"
    methods["create_dir"] = lambda _, path, parents: LOCAL.create_dir(path, recursive=parents)
    methods["open_output_stream"] = lambda _, path, __: (
        pa.PythonFile(_Cut(path), mode="w") if cut else LOCAL.open_output_stream(path)
    )
    return fs.PyFileSystem(type("Disk", (fs.FileSystemHandler,), methods)())


def journal(folder: Path, *, cut: bool = False) -> Journal:
    return Journal(str(folder), [(disk(cut=cut), str(folder))])


def test_a_cut_write_is_as_if_it_had_not_been(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"):
        journal(tmp_path, cut=True).write_state(0, 0, STATE)
    assert newest_state(journal(tmp_path), 1, 0) is None

    assert journal(tmp_path).write_state(0, 0, STATE)
    assert not journal(tmp_path).write_state(0, 0, STATE)
    read = newest_state(journal(tmp_path), 1, 0)
    assert read is not None
    assert read.checksum() == STATE.checksum()
    names = [path.name for path in (tmp_path / "000000000000").iterdir()]
    assert names == ["source-00000.state"]
