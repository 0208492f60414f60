"""The functions that kernels call, for numbers of each type: how each is made of operations, or what it is called.

A function is one of three kinds. *Made*: straight-line code out of operations, written at the place of its call; loops
around it run in vectors. *Instructions* of every processor, and *library* functions of C: the printers know what those
are called. The mathematics of those that are made is in `elementary`, `trigonometry`, `special`, `halves` and `whole`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from .. import ir
from ..ir import Type, Value, Variable
from . import elementary, halves, special, trigonometry, whole
from .real import Real, select


@dataclass(frozen=True)
class Made:
    """A function that is made of operations: its arguments, statements that come first (as few functions need), and
    its value."""

    name: str
    arguments: tuple[Variable, ...]
    value: Value
    body: ir.Body = ()


def _sign(x: Real) -> Real:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, select(x.equals(0.0), 0.0, x)))


REAL: dict[str, Callable[[Real], Real]] = {
    "sign": _sign, "exp": elementary.exp, "expm1": elementary.expm1, "log": elementary.log,
    "log1p": elementary.log1p, "tanh": elementary.tanh, "sigmoid": elementary.sigmoid, "silu": elementary.silu,
    "softplus": elementary.softplus, "sin": trigonometry.sin, "cos": trigonometry.cos, "erf": special.erf,
    "gelu": special.gelu, "root": halves.root, "three_halves": halves.three_halves,
    "five_halves": halves.five_halves, "inverse_root": halves.inverse_root,
    "inverse_three_halves": halves.inverse_three_halves, "inverse_five_halves": halves.inverse_five_halves,
}  # fmt: skip

# LLVM's name of each, and C's.
INSTRUCTIONS = {
    "fabs": ("fabs", "fabs"), "sqrt": ("sqrt", "sqrt"), "floor": ("floor", "floor"), "ceil": ("ceil", "ceil"),
    "round": ("rint", "rint"), "rint": ("rint", "rint"), "abs": ("fabs", "fabs"), "fma": ("fma", "fma"),
    "maximum": ("maximum", ""), "minimum": ("minimum", ""),
}  # fmt: skip

# C's own functions, which run one number at a time.
LIBRARY = frozenset({"tan", "asin", "acos", "atan", "sinh", "cosh", "atan2", "hypot", "pow", "fmod"})


@cache
def made(name: str, type: Type) -> Made | None:
    """The function for arguments of a type; None if it is no function that is made."""
    if name in REAL and type.real:
        x = Variable("x", type)
        return Made(f"{name}_{type}", (x,), REAL[name](Real(x)).value)
    maker = whole.MAKERS.get(name)
    found = maker(type) if maker else None
    return None if found is None else Made(f"{name}_{type}", *found)


__all__ = ["INSTRUCTIONS", "LIBRARY", "REAL", "Made", "made"]
