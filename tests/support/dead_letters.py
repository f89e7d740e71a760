"""Dead letters that a job left in a folder."""

import base64
import json
from pathlib import Path
from typing import Any


def dead_letters_in(folder: Path) -> list[dict[str, Any]]:
    """Each with key and value as texts, batch by batch."""
    files = sorted(folder.glob("batch_id=*/*.json"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    for row in rows:
        for name in ("key", "value"):
            if name in row:
                row[name] = base64.b64decode(row[name]).decode(errors="replace")
    return rows
