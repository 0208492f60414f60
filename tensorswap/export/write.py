"""A program and its adjoint -> one importable file that needs numpy and numba, and nothing of tensorswap."""

from __future__ import annotations

import inspect
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..errors import ArgumentError, DerivativeError, LimitError
from ..language import ir, types
from ..language.render import access as show_access
from ..language.render import program as show
from ..rules.activity import default_wrt
from ..rules.adjoint import derive
from ..rules.expand import expand
from . import prelude
from .driver import Direction, parameters
from .names import Names, quoted, shown
from .scalar import sources

RULES = (types.Kind, types.join, types.promote, types.number, types.floating, types.accumulated)

IMPORTS = """
import math
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numba import njit
"""

COMPILED = """
# NaN and infinity keep their meaning; sums may be taken in any order.
compiled = njit(fastmath={"reassoc", "contract", "arcp", "afn"}, error_model="numpy", cache=False)
"""

CONSTANTS = """
INT, BOOL, DOUBLE = np.dtype(np.int64), np.dtype(np.bool_), np.dtype(np.float64)
UNSIGNED = np.dtype(np.uint64)
"""

WEAK = "WEAK_INT, WEAK_FLOAT, TRUTH = Kind(INT, True), Kind(DOUBLE, True), Kind(BOOL)"


def export(loops: ir.Loops, path: str | os.PathLike[str], wrt: Sequence[str] | None = None) -> None:
    """Writes the file whole, or not at all."""
    adjoint, why = _adjoint(loops, wrt)
    write_atomically(path, source(loops, adjoint, why))


def _adjoint(loops: ir.Loops, wrt: Sequence[str] | None) -> tuple[ir.Loops | None, str]:
    """The adjoint by the inputs named, or by all that have one; or why there is none."""
    if wrt is not None:
        return derive(loops, wrt)[0], ""
    inputs = default_wrt(loops)
    if not inputs:
        return None, "No output depends smoothly on an input, so there is no adjoint."
    try:
        return derive(loops, inputs)[0], ""
    except DerivativeError as error:
        return None, f"There is no adjoint: {error.faults[0].message}."


def source(loops: ir.Loops, adjoint: ir.Loops | None, why: str = "") -> str:
    """The text of the file."""
    programs = [expand(p) for p in (loops, adjoint) if p is not None]
    names = Names(programs)
    directions = [Direction(name, p, names) for name, p in zip(("forward", "adjoint"), programs, strict=False)]
    kernels, called = _kernels(directions)
    functions = {name for d in directions for kernel in d.kernels for name in kernel.functions}
    parts = [_description(directions, why), IMPORTS.strip(), COMPILED.strip(), *_legend(names)]
    parts += [*sources(functions), *kernels, CONSTANTS.strip()]
    parts += _rules()
    for direction, used in zip(directions, called, strict=True):
        parts += [direction.signature(), direction.kinds_function(), direction.sizes_function()]
        parts.append(direction.function(used, _check(direction), _usage(direction)))
    parts.append(f"__all__ = {[d.name for d in reversed(directions)]!r}")
    text = "\n\n\n".join(parts) + "\n"
    _check_readable(text)
    return text


def _kernels(directions: list[Direction]) -> tuple[list[str], list[list[str]]]:
    """The source of every kernel, and the names by which each direction calls its own: equal ones are one."""
    numbers: dict[str, int] = {}
    called = []
    for direction in directions:
        used = []
        for kernel in direction.kernels:
            end = ["    return 0, 0"] if kernel.faults else []
            head = f"({', '.join(parameters(kernel))}):"
            text = "\n".join([head, *kernel.lines.text, *end])
            used.append(f"loop_{numbers.setdefault(text, len(numbers))}")
        called.append(used)
    return [f"@compiled\ndef loop_{number}{text}" for text, number in numbers.items()], called


def _rules() -> list[str]:
    """How types are joined, as tensorswap does it, and the text of the prelude."""
    first, *rest = (inspect.getsource(rule).strip() for rule in RULES)
    copied = inspect.getsource(prelude).split("# -- everything below is copied\n", 1)[1]
    return [first, WEAK, *rest, copied.strip()]


def _legend(names: Names) -> list[str]:
    lines = ["# Tensors, indices and static integers have names of their own in the kernels:", *names.legend()]
    return ["\n".join([lines[0], *(f"#   {line}" for line in lines[1:])])]


def _description(directions: list[Direction], why: str) -> str:
    forward, *adjoint = directions
    lines = ["Made by tensorswap from this program:", "", *_indented(show(forward.loops)), "", f"    {_call(forward)}"]
    if adjoint:
        lines += ["", "and from its adjoint:", "", *_indented(show(adjoint[0].loops)), "", f"    {_call(adjoint[0])}"]
    else:
        lines += ["", why]
    lines += ["", "It needs numpy and numba. Kernels are compiled at the first call with arrays of new types."]
    return f'"""{quoted(chr(10).join(lines))}\n"""'


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.split("\n")]


def _call(direction: Direction) -> str:
    """How a direction is called, and what it gives."""
    loops = direction.loops
    names = [*loops.inputs, *loops.static_names, *direction.needed]
    if all(name.isidentifier() for name in names):
        inner = ", ".join(f"{name}=..." for name in names)
    else:
        inner = "{" + ", ".join(f"{name!r}: ..." for name in names) + "}"
    results = ", ".join(loops.outputs)
    return f"{direction.name}({inner})  # gives {results if len(loops.outputs) == 1 else f'a dict of {results}'}"


def _usage(direction: Direction) -> str:
    loops = direction.loops
    accesses = {a.tensor: a for s in reversed(loops.statements) for a in (s.target, *reversed(s.reads))}
    accesses |= {a.tensor: a for a in loops.header_accesses}

    def listed(names: Sequence[str]) -> str:
        return ", ".join(show_access(accesses[n]) if n in accesses else n for n in names)

    lines = [f"Takes {listed(loops.inputs) or 'no arrays'} by name, gives {listed(loops.outputs)}."]
    whole = [*loops.static_names, *(f"size of {name}" for name in direction.needed)]
    if whole:
        lines.append(f"Whole numbers: {', '.join(whole)}.")
    if direction.optional:
        lines.append(f"The sizes of these indices may be given, too: {', '.join(direction.optional)}.")
    return "\n\n    ".join(shown(line) for line in lines) + ("\n    " if len(lines) > 1 else "")


def _check(direction: Direction) -> str:
    """A derivative is refused where its program would be."""
    if direction.name == "forward":
        return ""
    return "if FORWARD.sufficient(values):\n        forward_sizes(Arguments(FORWARD, FORWARD.own(values)))"


def _check_readable(text: str) -> None:
    try:
        compile(text, "<export>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise LimitError(
            f"the program is too large or too deep to be exported: {error}",
            hint="compute parts of long expressions in statements of their own",
        ) from error


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """A reader of the path sees the old file or the new one."""
    try:
        target = Path(path)
    except TypeError as error:
        raise ArgumentError(
            f"export takes a path, not {type(path).__name__}", hint='write p.export("model.py")'
        ) from error
    if not target.name or target.is_dir():
        raise ArgumentError(f"{str(target)[:200]!r} is a folder", hint='name a file: p.export("model.py")')
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "x", encoding="ascii") as file:
            file.write(text)
        os.replace(temporary, target)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        with suppress(OSError, ValueError):
            os.unlink(temporary)
        raise ArgumentError(
            f"{str(target)[:200]!r} cannot be written: {str(error)[:200]}",
            hint="name a file in a folder that exists and that you may write to",
        ) from error
