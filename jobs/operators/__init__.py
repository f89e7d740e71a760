"""Operators: what to compute from the records of each key."""
