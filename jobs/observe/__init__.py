"""What is shown of a running job: metrics, health, page, terminal, inspection."""
