"""The streaming query: what it reads, how it prepares, routes and aggregates it."""
