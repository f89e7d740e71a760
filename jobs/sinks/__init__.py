"""Where results and dead letters go."""
