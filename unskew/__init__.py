"""Unskew: skew-proof partitioning for PySpark Structured Streaming."""
