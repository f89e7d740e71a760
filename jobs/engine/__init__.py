"""What runs the query: the checks before a start, the session, the service."""
