"""What is shown of `grouping: auto`."""
