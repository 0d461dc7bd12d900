"""`python -m gitsched`: the command line where no script is installed."""

import sys

from gitsched.cli import main

sys.exit(main())
