"""A query's checkpoint: its identity, its lock, its files, Spark's logs, the merge's state."""
