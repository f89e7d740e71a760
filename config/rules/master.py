"""A master of Spark's that there is none of."""

import re
from collections.abc import Iterator, Mapping

from unskew.config.rules.registry import Contradiction, rule
from unskew.config.types.secrets import Secret, reveal

_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[.*\]|(spark|k8s)://.+|yarn"
)


@rule("spark")
def master_is_known(spark: Mapping[str, str | Secret]) -> Iterator[Contradiction]:
    """Spark's launcher would reject it with a stack trace."""
    master = reveal(spark).get("spark.master", "local")
    if not _MASTER.fullmatch(master):
        yield Contradiction(
            ("spark", "spark.master"),
            f"{master}: no master that Spark knows",
            "write local[*], spark://HOST:PORT, k8s://URL or yarn",
        )
