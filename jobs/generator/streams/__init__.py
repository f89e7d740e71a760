"""The streams, a file each, and what their records are drawn with."""
