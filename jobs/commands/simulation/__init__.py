"""What `simulate` and `compare` share: their options, their tables and plots."""
