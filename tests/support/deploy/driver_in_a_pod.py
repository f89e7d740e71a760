"""What a test starts as the driver of a pod: the manifests' job and settings, a little work."""

import json
import sys

from pyspark.sql import functions as sf

from unskew.config.loader import load_job
from unskew.jobs.engine.session import open_job_session

ASKED = (
    "spark.driver.bindAddress",
    "spark.driver.port",
    "spark.authenticate",
    "spark.network.crypto.enabled",
)


def main(job_file: str, changes: str) -> None:
    """Count on executors, in Python, and print by which; then stop."""
    job = load_job(job_file, json.loads(changes))
    with open_job_session(job) as spark:

        @sf.udf("string")
        def where(number: int) -> str:
            import os

            from unskew.grouping.registry import GROUPINGS

            return f"{os.environ['SPARK_EXECUTOR_POD_NAME']} {len(GROUPINGS)}"

        rows = spark.range(1000, numPartitions=4).groupBy(where("id").alias("at")).count()
        conf = spark.sparkContext.getConf()
        asked = {name: conf.get(name) for name in ASKED}
        print(json.dumps({"at": {row["at"]: row["count"] for row in rows.collect()}, **asked}))


if __name__ == "__main__":
    main(*sys.argv[1:])
