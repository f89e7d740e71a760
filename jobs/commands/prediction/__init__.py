"""Predicting batches from a sample of the user's own keys: what `unskew compare` shows."""
