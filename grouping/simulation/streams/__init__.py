"""The streams that groupings are compared on: drawn, like published ones, or read from files."""
