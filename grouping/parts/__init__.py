"""What groupings are made of: choices among partitions, heads, placements."""
