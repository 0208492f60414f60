"""`tensorswap cache`: where compiled kernels lie and how many; how to be rid of them, and how to have them early."""

from __future__ import annotations

import argparse
import stat
import time
from pathlib import Path

from ..errors import ArgumentError, SwapError
from .given_sizes import add_sizes, inputs_for
from .show import read
from .with_gradient import seeds, with_gradient

KERNEL = ".kernel"
OURS = (KERNEL, ".object", ".plan", ".verdict")
EXAMPLES = """\
examples:
  tensorswap cache info                     where kernels lie, how many, how large
  tensorswap cache clear                    delete them all
  tensorswap cache warm softmax --size j=1000
  tensorswap cache warm 'Y[i,j] += A[i,k] * B[k,j]' --size k=512 --size j=512
                                            compile now what a later process will call: forward and gradient

A kernel is for sizes of all axes but the first, and for one dtype. TENSORSWAP_CACHE names another folder.
"""


def describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("info", "clear", "warm"), default="info")
    parser.add_argument("source", nargs="*", metavar="PROGRAM", help="for warm: statements, a .loop file, ops, models")
    parser.add_argument("--clear", action="store_true", help="the same as `clear`")
    add_sizes(parser)


def run(chosen: argparse.Namespace) -> None:
    action = "clear" if chosen.clear else chosen.action
    if chosen.source and action != "warm":
        raise ArgumentError(
            f"`cache {action}` is for all kernels, and takes no program", hint="tensorswap cache warm ..."
        )
    if action == "warm":
        _warm(chosen)
        return
    from ..run.cache import folder  # it asks Numba for the CPU

    place = folder()
    if place is None:
        print("no folder can be written to: kernels are not kept")
        return
    files = {path: size for path in place.iterdir() if path.suffix in OURS and (size := _bytes_of(path)) is not None}
    kernels = sum(path.suffix == KERNEL for path in files)
    print(f"{place}: {kernels} kernels, {sum(files.values()) / 1e6:.1f} MB")
    if action == "clear":
        for path in files:
            path.unlink(missing_ok=True)
        print("cleared")


def _bytes_of(path: Path) -> int | None:
    """How large a file is, if it is one: some may not be ours, and some go while others clear the folder."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _warm(chosen: argparse.Namespace) -> None:
    """Calls each program and its gradient once, so that their kernels are kept."""
    from ..run.cache import folder

    if not chosen.source:
        raise ArgumentError("what is to be compiled?", hint="tensorswap cache warm softmax --size j=1000")
    if folder() is None:
        raise SwapError("no folder can be written to, so that kernels are not kept", hint="TENSORSWAP_CACHE=FOLDER")
    for source in chosen.source:
        start = time.perf_counter()
        program = read(source)
        made = inputs_for(program, chosen)
        program(made.arguments)
        both, told = with_gradient(program, made, None)
        if both is not None:
            both({**made.arguments, **seeds(both, made, chosen.dtype)})
        print(f"{source.strip().splitlines()[0][:60]}: {told}, {time.perf_counter() - start:.2f} s", flush=True)
