"""The models of a job file, one module a section; `job` puts them together."""
