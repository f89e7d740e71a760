"""Which grouping a query has: the job's own, or what `grouping: auto` takes."""
