"""Several jobs of rows in one Spark session, each in a thread of its own, until all have ended.

    python -m tests.support.running.tables_driver FOLDER [--vacuum]

Each folder in FOLDER has a `job.yaml`; `spark.json` has the session's settings. With `--vacuum` the
files outside of the tables' logs are counted at the end, and Delta removes those of its tables.
"""

import json
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.running.tables_read import files_outside_of_log
from unskew.config.loader import load_job
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.session import session


def main(folder: Path, *, vacuum: bool) -> int:
    """Run the jobs; 1 if a job failed."""
    settings = json.loads((folder / "spark.json").read_text())
    with session("tables", settings, ["delta"]) as spark:
        starts = [Start(spark, file) for file in sorted(folder.glob("*/job.yaml"))]
        failed = [start for start in starts if not start.succeeded()]
        if vacuum and not failed:
            outside = {start.name: len(files_outside_of_log(start.table)) for start in starts}
            (folder / "outside.json").write_text(json.dumps(outside))
            for start in starts:
                if (start.table / "_delta_log").exists():
                    spark.sql(f"VACUUM delta.`{start.table}` RETAIN 0 HOURS")
    return int(bool(failed))


class Start:
    """One start of one job."""

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self.name = file.parent.name
        self.table = file.parent / "table"
        self._spark = spark
        self._file = file
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def succeeded(self) -> bool:
        """Wait for its end."""
        self._thread.join()
        if self._error is not None:
            print(f"{self.name}: {self._error}", file=sys.stderr, flush=True)
        return self._error is None

    def _run(self) -> None:
        try:
            Service(load_job(self._file), self._spark).run()
        except BaseException as error:  # noqa: BLE001 - printed by whoever waits for it
            self._error = error


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), vacuum="--vacuum" in sys.argv))
