"""The streaming query: source to merge, and the service that follows it."""
