"""The options `--size`, `--shape` and `--dtype`, and random inputs as they say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError
from ..program import Program
from ..trust.inputs import SIZE, Draw, Inputs, random_inputs


def add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=NUMBER",
        help=f"size of an index ({SIZE} if not named; `...` is one too), or a static integer",
    )  # fmt: skip
    parser.add_argument("--shape", action="append", default=[], metavar="X=3,4", help="shape of an input")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")


def inputs_for(program: Program, chosen: argparse.Namespace, shapes_alone: bool = False) -> Inputs:
    """Random inputs of the sizes and shapes that are given."""
    draw = Draw(shapes_alone=shapes_alone)
    sizes = {name: numbers[0] for name, numbers in _pairs("--size", chosen.size).items()}
    return random_inputs(program.loops, sizes, _pairs("--shape", chosen.shape), np.dtype(chosen.dtype), draw)


def _pairs(option: str, texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """NAME=NUMBER, or NAME=NUMBER,NUMBER for a shape."""
    form, example = ("NAME=NUMBER", "--size i=128") if option == "--size" else ("NAME=NUMBER,NUMBER", "--shape X=3,4")
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            numbers = tuple(int(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if not numbers or (option == "--size" and len(numbers) > 1) or max(map(abs, numbers)) >= 2**62:
            raise ArgumentError(f"{option} takes {form}, not {text[:80]!r}", hint=example)
        if name in found:
            raise ArgumentError(f"{option} names {name[:80]} twice", hint="give each name once")
        found[name] = numbers
    return found
