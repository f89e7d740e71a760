"""Writes `deploy/jars.sha256` from `deploy/ivy.xml`, after a change of versions."""

import tempfile
from pathlib import Path

from unskew.jobs.local.jars import hash_file, resolve


def main() -> None:
    """Resolve into a temporary folder and list what came."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        resolve(root, print)
        lines = [f"{hash_file(p)}  {p.relative_to(root)}" for p in sorted(root.glob("*/*.jar"))]
    Path(__file__).with_name("jars.sha256").write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} jars listed")


if __name__ == "__main__":
    main()
