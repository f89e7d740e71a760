"""What is beside a query's checkpoint: whose it is, its lock, its files."""
