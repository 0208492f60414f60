"""`python -m tests.numpy_einsum`: all of numpy's tests of einsum, compiled, about a quarter of an hour.

`--interpreted` takes the reference interpreter, a minute; `-k word` some of the tests.
"""

from __future__ import annotations

import argparse
import sys

from .run import report, run

parser = argparse.ArgumentParser(prog="python -m tests.numpy_einsum")
parser.add_argument("--interpreted", action="store_true")
parser.add_argument("-k", default="", metavar="WORD", dest="chosen")
options = parser.parse_args()
swapped = run(options.interpreted, options.chosen)
print(report(swapped))
sys.exit(swapped.results["passed"] == 0 or swapped.results["passed"] != swapped.results.total())
