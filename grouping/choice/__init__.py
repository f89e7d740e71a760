"""Which grouping the next batch should have, by the cost model and by measured batches."""
