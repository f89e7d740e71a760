"""Reading dead letters, and producing their records once more."""
