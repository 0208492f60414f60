"""`tensorswap playground`: a page on this machine that shows a program's derivatives while it is typed."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from ..errors import ArgumentError
from ..language.limits import TEXT_LENGTH
from ..playground.fragment import MARK, fragment, from_link
from .show import read

NEEDED = ("starlette", "uvicorn")
EXAMPLES = """\
examples:
  tensorswap playground                                   opens a page in your browser
  tensorswap playground 'Y[i,j] += A[i,k] * B[k,j]'       with these statements
  tensorswap playground softmax                           with an op of the library
  tensorswap playground model.loop --no-open              prints the address only
  tensorswap playground 'http://127.0.0.1:8421/#p=...'    with the program of a link
"""


def describe(parser: argparse.ArgumentParser) -> None:
    told = "what the page starts with: statements, a .loop file, an op, or a link"
    parser.add_argument("source", metavar="PROGRAM", nargs="?", help=told)
    parser.add_argument("--port", type=int, help="of this machine (default: 8421, or one that is free)")
    parser.add_argument("--no-open", action="store_true", help="print the address, and open no browser")


def run(chosen: argparse.Namespace) -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ArgumentError(
            f"the playground needs {' and '.join(missing)}", hint="pip install 'tensorswap[playground]'"
        )
    if chosen.port is not None and not 0 <= chosen.port < 2**16:
        raise ArgumentError(f"{chosen.port} is no port", hint="--port 8421")
    from ..playground.serve import serve  # it needs packages that not everybody has

    serve(chosen.port, not chosen.no_open, "" if chosen.source is None else shown(chosen.source))


def shown(source: str) -> str:
    """The part of the address behind `#` that holds a program."""
    return fragment(*from_link(source)) if f"#{MARK}" in source or source.startswith(MARK) else fragment(_text(source))


def _text(source: str) -> str:
    """As it was written, mistakes and all: the page shows those."""
    if source == "-":
        return sys.stdin.read(TEXT_LENGTH)
    if any(character in source for character in "=[\n"):
        return source
    if not Path(source).suffix:
        return str(read(source))
    try:
        with Path(source).open(encoding="utf-8-sig") as file:
            return file.read(TEXT_LENGTH)
    except (OSError, ValueError) as error:  # a name with a NUL byte, a file that is no text
        raise ArgumentError(f"{source[:200]} cannot be read: {error}", hint="give the path of a .loop file") from None
