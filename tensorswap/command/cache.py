"""`tensorswap cache`: where compiled kernels lie, how many there are, and how to be rid of them."""

from __future__ import annotations

import argparse
from typing import Any


def add(words: Any) -> None:
    parser = words.add_parser("cache", help="show or clear the compiled kernels on disk")
    parser.add_argument("--clear", action="store_true", help="delete them all")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from ..run.cache import folder  # it asks Numba for the CPU

    place = folder()
    if place is None:
        print("no folder can be written to: kernels are not kept")
        return
    files = [path for path in place.glob("*.kernel") if path.is_file()]  # a folder may hold what is not ours
    size = sum(path.stat().st_size for path in files)
    print(f"{place}: {len(files)} kernels, {size / 1e6:.1f} MB")
    if chosen.clear:
        for path in (*files, *place.glob("*.verdict")):
            path.unlink(missing_ok=True)
        print("cleared")
