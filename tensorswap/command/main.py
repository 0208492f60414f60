"""The command `tensorswap`: one small parser for each of its words."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import SwapError
from . import bench, cache, doctor, show, train

PARTS = (train, show, bench, cache, doctor)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tensorswap", description="Tensor programs as index-loop statements, with derived gradients."
    )
    parser.add_argument("--version", action="version", version=f"tensorswap {__version__}")
    words = parser.add_subparsers(dest="word", required=True, metavar="command")
    for part in PARTS:
        part.add(words)
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen) or 0)
    except SwapError as error:
        print(f"tensorswap: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tensorswap: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has enough
        return 0


if __name__ == "__main__":
    sys.exit(main())
