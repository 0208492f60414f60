"""`tensorswap profile`: where the time of a program goes, kernel by kernel."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ArgumentError
from ..program import Program
from ..run.call import threads
from .colour import paint_for
from .given_sizes import add_sizes, inputs_for
from .show import add_source, read_all
from .with_gradient import seeds, with_gradient

EXAMPLES = """\
examples:
  tensorswap profile softmax --size ...=512 --size j=1000
  tensorswap profile softmax --size ...=512 --size j=1000 --gradient      forward and backward
  tensorswap profile layer.loop --shape X=64,128 --dtype float64
  tensorswap profile models/mlp --size n=64 --gradient

The kernels of a call run one by one, on random inputs. What the whole call takes beyond them is checks, memory and
Python. `tensorswap explain PROGRAM --size ... --stage plan` says why a kernel runs as it does.
"""
COLUMNS = 100  # of a statement that are shown


def describe(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_sizes(parser)
    parser.add_argument("--gradient", action="store_true", help="forward and backward, as a training step has them")
    parser.add_argument("--wrt", action="append", metavar="NAME", help="differentiate by this input (default: by all)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (default: 1)")


def run(chosen: argparse.Namespace) -> None:
    if not 0 <= chosen.seconds < math.inf:
        raise ArgumentError(f"--seconds is a number of seconds, not {chosen.seconds}", hint="--seconds 1")
    program = read_all(chosen.source)
    made = inputs_for(program, chosen)
    arguments: dict[str, Any] = made.arguments
    if chosen.gradient or chosen.wrt:
        both, told = with_gradient(program, made, chosen.wrt)
        if both is None:
            raise ArgumentError(told, hint="leave --gradient out")
        print(told)
        program, arguments = both, {**arguments, **seeds(both, made, chosen.dtype)}
    _show(program, arguments, chosen)


def _show(program: Program, arguments: Mapping[str, Any], chosen: argparse.Namespace) -> None:
    by_numpy = bool(program.executable(arguments).products)  # or there are no kernels at all, which is told
    start = time.perf_counter()
    program(arguments)
    first = time.perf_counter() - start
    whole = _median(lambda: program(arguments), chosen.seconds)
    shapes = [f"{name} {' x '.join(map(str, a.shape))}" for name, a in arguments.items() if hasattr(a, "shape")]
    print(f"{chosen.dtype}, {threads()} threads; {', '.join(shapes) or 'no arrays'}")
    if by_numpy:
        print(f"whole call {_time(whole)}, first call {_time(first)}")
        print("it is run by numpy's matrix product, which wins at these sizes: there are no kernels to show")
        return
    paint = paint_for(sys.stdout)
    found = program.kernel_times(arguments, chosen.seconds)
    total = sum(item.seconds for item in found) or 1.0
    print(paint("head", f"{'kernel':>6}{'share':>8}{'time':>12}{'GFLOP/s':>10}{'GB/s':>8}{'threads':>9}  statement"))
    for number, item in enumerate(found, 1):
        speed, moved = (_digits(n / item.seconds / 1e9) for n in (item.row.operations, item.row.bytes))
        line, *others = item.row.statements or (item.row.why,)
        figures = (
            f"{number:>6}{item.seconds / total:>8.0%}{_time(item.seconds):>12}{speed:>10}{moved:>8}{item.threads:>9}"
        )
        print(f"{figures}  {paint.code(line[:COLUMNS])}")
        for other in others:
            print(f"{'':>53}  {paint.code(other[:COLUMNS])}")
    print(f"kernels {_time(total)}, whole call {_time(whole)}, first call {_time(first)}")


def _median(call: Callable[[], Any], seconds: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _time(seconds: float) -> str:
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if seconds >= s), ("us", 1e-6))
    return f"{_digits(seconds / size)} {unit}"


def _digits(number: float) -> str:
    """Three digits that count, and no exponent."""
    return f"{number:,.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0 else "0"
