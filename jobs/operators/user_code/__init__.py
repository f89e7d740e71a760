"""Operators of a user's own: the class and its file, rows, what is opened for a key."""
