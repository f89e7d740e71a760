"""Problems of a file: found, located and printed."""
