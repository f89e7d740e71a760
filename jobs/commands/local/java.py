"""`unskew java`: print the Java that Spark and Kafka run on, as JAVA_HOME of one's own programs."""

import argparse

from unskew.jobs.local.java import VERSION_MIN, find_java_home


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe it; there are no options."""
    parser.description = (
        f"Print a folder with `bin/java` of version {VERSION_MIN} or later: that of JAVA_HOME or"
        " of the PATH, or else the one from pip (`unskew[jre]`). Programs that start Spark"
        ' themselves need it: export JAVA_HOME="$(unskew java)". Exit code 1 if there is none.'
    )


def run(_arguments: argparse.Namespace) -> int:
    """Print the folder."""
    print(find_java_home())
    return 0
