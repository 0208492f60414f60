"""`python -m tensorswap` is the command `tensorswap`."""

import sys

from .command.main import main

sys.exit(main())
