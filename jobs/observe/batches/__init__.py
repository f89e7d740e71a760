"""What is known of a finished batch: times, counts, what was written and what was rejected."""
