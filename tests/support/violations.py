"""What is not mergeable about an operator, as lines."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from unskew.jobs.operators.base import Operator
from unskew.jobs.operators.mergeability import Case, find_violations


def find_mergeability_violations(
    spark: SparkSession, operator: Operator, cases: Sequence[Case]
) -> list[str]:
    """How merged results differ from direct ones, a line each: none of a mergeable operator."""
    violations, other_types = find_violations(spark, operator, cases)
    return [*([other_types] if other_types else []), *map(str, violations)]
