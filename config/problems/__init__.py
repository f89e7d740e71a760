"""What is wrong with a file, and how it is said."""
