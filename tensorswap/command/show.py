"""`tensorswap explain`: a program with the statements that its derivative is made of."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..program import Program, load, program


def add(words: Any) -> None:
    parser = words.add_parser("explain", help="show each statement of a program with the adjoint statements it gives")
    parser.add_argument("source", help="a .loop file, the name of an op or a model, or `-` for standard input")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    print(read(chosen.source).explain())


def read(source: str) -> Program:
    """The program of a file, an op, a model, standard input, or of statements."""
    if source == "-":
        return program(sys.stdin.read())
    if Path(source).suffix in (".loop", "") and not any(c in source for c in "=[\n"):
        return load(source)
    return program(source)
