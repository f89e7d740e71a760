"""Sketches: small summaries of a stream that the groupings are made of."""
