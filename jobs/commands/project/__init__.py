"""Commands for a project of one's own: begin one, and try its job over sample records."""
