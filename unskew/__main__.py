"""`python -m unskew`: the command line."""

import sys

from unskew.jobs.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
