"""Predicting batches from a sample of somebody's own keys: what `unskew compare` shows."""
