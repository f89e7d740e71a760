"""`unskew explain`: the effective job, as YAML that lints clean."""

import argparse
import json
import sys

from unskew.config.arguments import add_job_argument
from unskew.config.explain import explain, write_yaml


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Print the effective job: defaults filled in, references as they are written: what they"
        " bring may be a secret."
    )
    add_job_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of YAML")


def run(arguments: argparse.Namespace) -> int:
    """Print the job."""
    job = explain(arguments.job)
    if arguments.json:
        sys.stdout.write(json.dumps(job, indent=2) + "\n")
    else:
        sys.stdout.write(write_yaml(job))
    return 0
