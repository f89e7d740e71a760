"""The application: command line, local broker, pipeline, operators."""
