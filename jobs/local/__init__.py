"""What a job needs of this machine: processes, Java, jars, signals."""
