"""What groupings are made of: choices among partitions, heads, shares made level."""
