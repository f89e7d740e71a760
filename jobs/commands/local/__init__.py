"""Commands for this machine: its Java, its JVM artifacts, a broker."""
