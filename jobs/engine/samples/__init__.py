"""A job without a stream: over sample records, or over the first records of its source."""
