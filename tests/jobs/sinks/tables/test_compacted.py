"""OPTIMIZE and VACUUM beside jobs that write the same Delta tables."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.running.compacted_tables import make_rows


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_tables_are_exact_while_they_are_compacted(root: Path, tmp_path: Path, seed: int) -> None:
    module = "tests.support.running.compacted_tables"
    command = [sys.executable, "-m", module, str(tmp_path), str(seed)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"again: {' '.join(command)}\n{done.stderr[-4000:]}"
    shown = json.loads((tmp_path / "shown.json").read_text())

    rows = [row for batch in make_rows(seed) for row in batch]
    wanted = sorted([row["country"], str(row["amount"])] for row in rows)
    assert shown["tables"]["rows"] == wanted
    counts = Counter(row["country"] for row in rows)
    assert shown["tables"]["counts"] == sorted([key, str(n)] for key, n in counts.items())
    # What rows are added to is compacted beside that, and neither waits for the other.
    assert shown["retries"]["rows"] == []
    assert shown["done"]["OPTIMIZE rows"] > 0
    assert shown["done"]["VACUUM rows"] > 0
    assert shown["done"]["OPTIMIZE counts"] > 0
    assert all("another writer, such as OPTIMIZE" in each for each in shown["retries"]["counts"])
