"""`tensorswap bench`: how long a program and its gradient take on this machine, beside numpy where it is an einsum."""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from string import ascii_letters
from typing import Any

import numpy as np

from ..errors import ArgumentError, SwapError
from ..language import ir
from ..language.build import factors
from ..program import Program
from ..run.call import threads
from ..trust.inputs import Inputs
from .given_sizes import add_sizes, inputs_for
from .show import add_source, read_all
from .with_gradient import seeds, with_gradient

SAFETY = 16.0  # rounding errors of a sum grow with the root of its number of terms; this many times over is too much
CALLS = 3  # at least, so that a median means something
COLUMNS = 100  # of a program that are shown


EXAMPLES = """\
examples:
  tensorswap bench 'Y[i,j] += A[i,k] * B[k,j]' --size i=512 --size j=512 --size k=512
  tensorswap bench softmax --size ...=64 --size j=1000 --dtype float64
  tensorswap bench conv2d --shape input=8,3,32,32 --shape weight=16,3,3,3 --wrt weight
  tensorswap bench models/mlp --size n=64

Indices that are not named have the size 64. Where a program is an einsum, numpy's is timed beside it.
"""


def describe(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_sizes(parser)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (default: 1)")
    parser.add_argument("--wrt", action="append", metavar="NAME", help="differentiate by this input (default: by all)")


def run(chosen: argparse.Namespace) -> None:
    if not 0 <= chosen.seconds < math.inf:
        raise ArgumentError(f"--seconds is a number of seconds, not {chosen.seconds}", hint="--seconds 1")
    program = read_all(chosen.source)
    made = inputs_for(program, chosen)
    both, gradient = with_gradient(program, made, chosen.wrt)
    _tell_inputs(program, made, chosen.dtype)
    print(f"{gradient}\n", flush=True)
    table = Table(chosen.seconds)
    forward = Timed(program, made.arguments)
    contraction = as_einsum(made.bound.loops)
    peer = None if contraction is None else _checked(contraction, forward.result, made)
    table.program("forward", forward)
    if both is not None:
        table.program("forward and backward", Timed(both, {**made.arguments, **seeds(both, made, chosen.dtype)}))
    if peer is not None:
        table.row("numpy.einsum, forward", peer, forward.operations)


def _tell_inputs(program: Program, made: Inputs, dtype: str) -> None:
    text = str(program)
    first = text.partition("\n")[0][:COLUMNS]
    print(first if first == text else f"{first} ...")
    shown = [
        f"{name} {' x '.join(map(str, value.shape))}" + (" whole numbers" if value.dtype.kind == "i" else "")
        for name, value in made.arguments.items()
        if isinstance(value, np.ndarray)
    ]
    shown += [f"{name}={value}" for name, value in made.arguments.items() if isinstance(value, int)]
    print(f"{dtype}, {threads()} threads; {', '.join(shown) or 'no arrays'}")


class Timed:
    """A program with its arguments, and its first call."""

    def __init__(self, program: Program, arguments: dict[str, Any]) -> None:
        self.call = partial(program, arguments)
        start = time.perf_counter()
        self.result = self.call()
        self.first = time.perf_counter() - start
        plan = program.plan(arguments)
        self.operations = sum(row.operations for row in plan.rows)  # none where it is interpreted
        self.reason = plan.reason


class Table:
    """Rows that are printed as they are measured, so that what is done stays if the run is ended early."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        print(f"{'':<24}{'first call':>12}{'median':>14}{'GFLOP/s':>10}{'calls':>10}", flush=True)

    def program(self, name: str, timed: Timed) -> None:
        self.row(name, timed.call, timed.operations, f"{_digits(timed.first)} s")
        if timed.reason:
            print(f"  not compiled: {timed.reason}", flush=True)

    def row(self, name: str, call: Callable[[], Any], operations: int, first: str = "") -> None:
        times: list[float] = []
        end = time.perf_counter() + self.seconds
        while len(times) < CALLS or time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        median = statistics.median(times)
        speed = _digits(operations / median / 1e9) if operations else ""
        print(f"{name:<24}{first:>12}{_digits(1e3 * median) + ' ms':>14}{speed:>10}{len(times):>10,}", flush=True)


def _digits(number: float) -> str:
    """Three digits that count, and no exponent."""
    return f"{number:,.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0 else "0"


def as_einsum(loops: ir.Loops) -> tuple[str, list[str]] | None:
    """The subscripts and operands of a program that is one product of inputs, summed over what the target lacks."""
    if len(loops.body) != 1 or not isinstance(loops.body[0], ir.Statement):
        return None
    statement = loops.body[0]
    parts = factors(statement.value)
    accesses = [statement.target, *(f for f in parts if isinstance(f, ir.Access))]
    places = [place for access in accesses for place in access.indices]
    target = [ir.bare(place) for place in statement.target.indices]
    names = list(dict.fromkeys(ir.bare(place) for access in accesses[1:] for place in access.indices))
    plain = (
        statement.operator in ("=", "+=")
        and statement.guard is None
        and not loops.sizes
        and len(accesses) == 1 + len(parts)
        and all(access.tensor in loops.inputs and access.indices for access in accesses[1:])
        and all(isinstance(place, ir.Index) for place in places)
        and len(set(target)) == len(target)
        and set(target) <= set(names)
        and len(names) <= len(ascii_letters)
    )
    if not plain:
        return None
    letters = dict(zip(names, ascii_letters, strict=False))
    terms = ["".join(letters[ir.bare(place)] for place in access.indices) for access in accesses]
    return f"{','.join(terms[1:])}->{terms[0]}", [access.tensor for access in accesses[1:]]


def _checked(contraction: tuple[str, list[str]], result: Any, made: Inputs) -> Callable[[], Any]:
    """The call of numpy's einsum, if it gives what the program gave."""
    subscripts, operands = contraction
    call = partial(np.einsum, subscripts, *(made.arguments[name] for name in operands), optimize=True)
    ours, numpys = np.asarray(result, np.float64), np.asarray(call(), np.float64)
    terms = math.prod(made.bound.sizes.index.values()) / max(ours.size, 1)
    allowed = SAFETY * float(np.finfo(made.bound.dtype).eps) * math.sqrt(terms)
    error = float(np.max(np.abs(ours - numpys)) / np.max(np.abs(numpys)))
    if not error <= allowed:
        raise SwapError(
            f"the program and numpy.einsum({subscripts!r}) differ by {error:.1e} of the largest element, "
            f"where rounding explains {allowed:.1e}: what is wrong is not timed",
            hint="please report it, with the program and its sizes",
        )
    return call
