"""`unskew jars`: fetch the JVM artifacts and print their paths, for `--jars` of one's own jobs."""

import argparse
import json

from unskew.config.errors import UsageError
from unskew.grouping.options.printed import show
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.jobs.local import jars


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("set", nargs="*", metavar="SET", help=f"of: {', '.join(jars.SETS)} (all)")
    parser.add_argument("--json", action="store_true", help="print a JSON object, set -> paths")


def run(arguments: argparse.Namespace) -> int:
    """Print one path a line."""
    unknown = [name for name in arguments.set if name not in jars.SETS]
    if unknown:
        raise UsageError(
            *[
                f"jars: unknown set (got {show(n)}); {suggest_nearest(n, jars.SETS)}"
                for n in unknown
            ]
        )
    paths_of = {
        name: [str(p) for p in jars.fetch_jars(name)] for name in arguments.set or jars.SETS
    }
    if arguments.json:
        print(json.dumps(paths_of, indent=2))
    else:
        print(*[path for paths in paths_of.values() for path in paths], sep="\n")
    return 0
