"""Shares that are held in pieces and dealt in fragments: what `prompt` is made of."""
