"""Kinds of values that are no plain scalars."""
