"""Displays of a running job: metrics, health, page, terminal, inspection."""
