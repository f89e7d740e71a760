"""Job files: models, loading with positions, checks, explanations."""
