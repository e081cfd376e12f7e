"""`python -m slidewise.bench fifo --quick`."""

import sys

from slidewise.bench import main

sys.exit(main(sys.argv[1:]))
