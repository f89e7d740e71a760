"""The published algorithms and our own, one a module; none imports another."""
