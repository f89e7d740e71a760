"""Groupings in Spark: the only package here that imports pyspark and pyarrow."""
