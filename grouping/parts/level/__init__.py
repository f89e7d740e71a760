"""What `level` is made of: one share made level, and what its sources agree on."""
