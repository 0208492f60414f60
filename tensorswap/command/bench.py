"""`tensorswap bench`: how long a program and its gradient take on this machine, beside numpy where it is an einsum."""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from string import ascii_letters
from typing import Any

import numpy as np

from ..errors import ArgumentError, DerivativeError, SwapError
from ..language import ir
from ..language.build import factors
from ..program import Program
from ..rules.activity import active, default_wrt, integer_uses
from ..rules.adjoint import derive
from ..run.call import threads
from ..trust.inputs import SIZE, Inputs, random_inputs
from .show import read

SAFETY = 16.0  # rounding errors of a sum grow with the root of its number of terms; this many times over is too much
CALLS = 3  # at least, so that a median means something
COLUMNS = 100  # of a program that are shown


def add(words: Any) -> None:
    parser = words.add_parser("bench", help="time a program and its gradient on random inputs")
    parser.add_argument("source", metavar="PROGRAM", help="statements, a .loop file, or the name of an op or a model")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=NUMBER",
        help=f"size of an index ({SIZE} if not named; `...` is one too), or a static integer",
    )  # fmt: skip
    parser.add_argument("--shape", action="append", default=[], metavar="X=3,4", help="shape of an input")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (default: 1)")
    parser.add_argument("--wrt", action="append", metavar="NAME", help="differentiate by this input (default: by all)")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    if not 0 <= chosen.seconds < math.inf:
        raise ArgumentError(f"--seconds is a number of seconds, not {chosen.seconds}", hint="--seconds 1")
    program = read(chosen.source)
    sizes = {name: numbers[0] for name, numbers in _pairs("--size", chosen.size).items()}
    made = random_inputs(program.loops, sizes, _pairs("--shape", chosen.shape), np.dtype(chosen.dtype))
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


def with_gradient(program: Program, made: Inputs, wrt: list[str] | None) -> tuple[Program | None, str]:
    """The program that gives the outputs and the gradients, as a training step has them, and what to say of it."""
    loops = program.loops
    by = wrt or list(default_wrt(loops))
    integers = integer_uses(loops)
    of = [name for name in loops.outputs if name not in integers and active(loops, by, [name])]
    if not wrt and not of:
        return None, "no input has a derivative here"
    unit = all(not made.bound.sizes.shapes[name] for name in of)  # as p.grad has it; else as p.adjoint, with seeds

    def derivation(given: ir.Loops) -> ir.Loops:
        return derive(given, by, of or None, unit=unit, keep=given.outputs)[0]

    try:
        return Program(derivation(loops), program, derivation), f"gradient by {', '.join(by)}"
    except DerivativeError as error:
        if wrt:
            raise
        return None, f"no gradient: {error}"


def seeds(both: Program, made: Inputs, dtype: str) -> dict[str, Any]:
    """Random gradients that come from above."""
    generator = np.random.default_rng(1)
    names = [name for name in both.inputs if name not in made.bound.loops.inputs]
    shapes = {name: made.bound.sizes.shapes[name.rpartition(".")[0]] for name in names}
    return {
        name: generator.random(shape).astype(dtype) if shape else float(generator.random())
        for name, shape in shapes.items()
    }


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
