"""The commands of `unskew`: one module each, with `configure(parser)` and `run(arguments)`."""
