"""Operators: what is computed of the records of each key."""
