"""Shared by `simulate` and `compare`: their options, their tables and plots."""
