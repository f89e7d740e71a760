"""Options as people write them: scalars, names that are nearly right, rules that a value breaks."""
