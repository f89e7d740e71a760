"""The commands of `unskew`, a module each, with `configure(parser)` and `run(arguments)`."""
