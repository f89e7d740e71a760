"""From a file's text to values with their positions."""
