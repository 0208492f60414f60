"""Runs PyTorch's samples: `python -m tests.opinfo [--ops softmax roll] [--sample 20] [--second 3] [--compiled 1]`."""

from __future__ import annotations

import argparse
import sys
import time

from .run import Tally, report, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.opinfo", description=__doc__)
    parser.add_argument("--ops", nargs="*", default=[], help="only ops whose name holds one of these words")
    parser.add_argument("--sample", type=int, default=0, help="at most so many samples of each op (all)")
    parser.add_argument("--second", type=int, default=3, help="second derivatives of so many samples of each op")
    parser.add_argument("--compiled", type=int, default=1, help="compiled calls for so many samples of each op")
    parser.add_argument("--reference", action="store_true", help="more samples: sizes, infinities and NaN as well")
    options = parser.parse_args()
    started = time.monotonic()
    tallies: list[Tally] = []
    for tally in run(options.ops, options.sample, options.second, options.compiled, options.reference):
        tallies.append(tally)
        print(f"{time.monotonic() - started:6.0f} s  {tally}", flush=True)
    print(report(tallies))
    return 1 if any(tally.faults for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
