"""Commands that read job files and start nothing."""
