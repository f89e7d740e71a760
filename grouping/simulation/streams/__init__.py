"""What traces are made of: draws, the options of traces like published ones, and files."""
