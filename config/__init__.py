"""Jobs as YAML: models, loader with positions, errors."""
