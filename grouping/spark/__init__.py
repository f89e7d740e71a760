"""Groupings in Spark: the only place here that knows pyspark and pyarrow."""
