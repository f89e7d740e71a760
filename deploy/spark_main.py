"""The file that spark-submit runs where it starts the driver: `unskew` with its arguments."""

import sys

from unskew.jobs.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
