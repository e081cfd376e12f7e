"""`python -m slidewise` is the command `slidewise`."""

import sys

from slidewise.cli import main

if __name__ == "__main__":
    sys.exit(main())
