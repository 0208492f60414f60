"""Scalar functions for kernels: straight-line code that LLVM vectorises where that pays, Numba's own elsewhere.

`NAMES` has them all, as functions that Numba compiles. Those in `EMITTED` need no compilation: each writes its LLVM
code at the place of the call. Their mathematics is in `elementary`, `trigonometry` and `special`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding
from llvmlite import ir as llvm
from numba import njit, types
from numba.extending import intrinsic

from . import elementary, special, trigonometry
from .real import FLAGS, Real, select

FASTMATH = {"reassoc", "contract", "arcp", "afn"}  # never nnan, ninf or nsz: NaN stays NaN
OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy"}
# Without reassoc: the order of operations carries the last digits.
EXACT: dict[str, Any] = {"fastmath": {"contract", "nsz"}, "error_model": "numpy", "forceinline": True}

Emitter = Callable[[Any, list[Any]], Any]  # an LLVM builder, the arguments -> the result
KINDS = {"f4": types.float32, "f8": types.float64}


def _is_real(value: Any) -> bool:
    return isinstance(value.type, (llvm.FloatType, llvm.DoubleType))


def _extreme(name: str, order: str, signed: bool = True) -> Emitter:
    """The larger or smaller of two equal types of number; NaN if one of them is."""

    def emit(builder: Any, values: list[Any]) -> Any:
        a, b = values
        if not _is_real(a):
            compare = builder.icmp_signed if signed else builder.icmp_unsigned
            return builder.select(compare(order, a, b), a, b)
        if binding.llvm_version_info[0] >= 20:  # before, not all machines knew it, and no loop over it was vectorised
            return Real(builder, a).call(name, Real(builder, b)).value
        return builder.select(builder.or_(builder.fcmp_ordered(order, a, b), builder.fcmp_unordered("uno", a, a)), a, b)

    return emit


def _square(builder: Any, values: list[Any]) -> Any:
    (x,) = values
    return builder.fmul(x, x, flags=FLAGS) if _is_real(x) else builder.mul(x, x)


def _cube(builder: Any, values: list[Any]) -> Any:
    (x,) = values
    square = _square(builder, values)
    return builder.fmul(square, x, flags=FLAGS) if _is_real(x) else builder.mul(square, x)


def _fourth(builder: Any, values: list[Any]) -> Any:
    return _square(builder, [_square(builder, values)])


def _sign(x: Real) -> Real:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, select(x.equals(0.0), 0.0, x)))


def _emitter(function: Callable[[Real], Real]) -> Emitter:
    return lambda builder, values: function(Real(builder, values[0])).value


FUNCTIONS: dict[str, Callable[[Real], Real]] = {
    "abs": abs, "sign": _sign, "sqrt": lambda x: x.call("sqrt"), "floor": lambda x: x.call("floor"),
    "ceil": lambda x: x.call("ceil"), "round": lambda x: x.call("rint"), "exp": elementary.exp,
    "expm1": elementary.expm1, "log": elementary.log, "log1p": elementary.log1p, "tanh": elementary.tanh,
    "sigmoid": elementary.sigmoid, "silu": elementary.silu, "softplus": elementary.softplus,
    "sin": trigonometry.sin, "cos": trigonometry.cos, "erf": special.erf, "gelu": special.gelu,
}  # fmt: skip

EMITTED: dict[str, Emitter] = {  # whole numbers among the arguments have a sign
    "maximum": _extreme("maximum", ">"), "minimum": _extreme("minimum", "<"), "square": _square,
    "cube": _cube, "fourth": _fourth,
    **{f"{name}_{kind}": _emitter(function) for name, function in FUNCTIONS.items() for kind in KINDS},
}  # fmt: skip


def _of_one(emit: Emitter, kind: Any) -> Any:
    """A function for Numba of one number of a given type, or of any type."""

    @intrinsic
    def emitted(typing_context: Any, x: Any) -> Any:
        exact = kind or types.unliteral(x)
        return exact(exact), lambda context, builder, signature, values: emit(builder, values)

    return njit(**EXACT)(lambda x: emitted(x))


def _of_two(name: str, order: str) -> Any:
    """A function for Numba of two numbers of one type."""

    @intrinsic
    def emitted(typing_context: Any, a: Any, b: Any) -> Any:
        kind = typing_context.unify_types(types.unliteral(a), types.unliteral(b))
        emit = _extreme(name, order, getattr(kind, "signed", False))
        return kind(kind, kind), lambda context, builder, signature, values: emit(builder, values)

    return njit(**EXACT)(lambda a, b: emitted(a, b))


@njit(**EXACT)
def above(new, best, position, held):  # type: ignore[no-untyped-def]  # typed by Numba, for every type of number
    """Whether a candidate of argmax= beats the one held: a NaN beats all numbers, the first beats its equals."""
    if held < 0:
        return True
    if new != new:
        return best == best or position < held
    return new > best or (new == best and position < held)


@njit(**EXACT)
def below(new, best, position, held):  # type: ignore[no-untyped-def]  # as above
    """As `above`, for argmin=."""
    if held < 0:
        return True
    if new != new:
        return best == best or position < held
    return new < best or (new == best and position < held)


def _both(name: str, function: Callable[[Any], Any]) -> dict[str, Any]:
    """One of Numba's own functions, under the names that kernels use."""
    wrapped = njit(**EXACT)(function)
    return {f"{name}_f4": wrapped, f"{name}_f8": wrapped}


@njit(**EXACT)
def integer_power(base, exponent):  # type: ignore[no-untyped-def]  # int64, int64 -> int64
    """By squaring: an exponent has at most 63 bits."""
    result = np.int64(1)
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@njit(**EXACT)
def keep(x):  # type: ignore[no-untyped-def]  # integers are whole already
    return x


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(**EXACT)
def mix(x):  # type: ignore[no-untyped-def]  # uint64 -> uint64
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(**EXACT)
def mixed(state, argument):  # type: ignore[no-untyped-def]  # uint64, int64 -> uint64
    return mix((state + GOLDEN) ^ mix(np.uint64(argument) + GOLDEN))


@njit(**EXACT)
def unit(bits):  # type: ignore[no-untyped-def]  # uint64 -> float64
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@njit(**EXACT)
def normal(bits):  # type: ignore[no-untyped-def]  # uint64 -> float64
    return math.sqrt(-2.0 * math.log(1.0 - unit(bits))) * math.cos(2.0 * math.pi * unit(mix(bits + GOLDEN)))


NAMES: dict[str, Any] = {
    "maximum": _of_two("maximum", ">"), "minimum": _of_two("minimum", "<"), "square": _of_one(_square, None),
    "cube": _of_one(_cube, None), "fourth": _of_one(_fourth, None),
    **{f"{name}_{kind}": _of_one(EMITTED[f"{name}_{kind}"], KINDS[kind]) for name in FUNCTIONS for kind in KINDS},
    "chosen": njit(**EXACT)(lambda test, yes, no: yes if test else no), "both": njit(**EXACT)(lambda a, b: a & b),
    "either": njit(**EXACT)(lambda a, b: a | b),
    "above": above, "below": below, "pow_i8": integer_power, "GOLDEN": GOLDEN, "mixed": mixed, "uniform": unit,
    "normal": normal, "abs_i8": njit(**EXACT)(lambda x: abs(x)), "sign_i8": njit(**EXACT)(lambda x: np.sign(x)),
    **{f"{name}_i8": keep for name in ("floor", "ceil", "round")},
    **_both("tan", lambda x: np.tan(x)), **_both("asin", lambda x: np.arcsin(x)),
    **_both("acos", lambda x: np.arccos(x)), **_both("atan", lambda x: np.arctan(x)),
    **_both("sinh", lambda x: np.sinh(x)), **_both("cosh", lambda x: np.cosh(x)),
    **{f"pow_{t}": njit(**EXACT)(lambda a, b: np.power(a, b)) for t in KINDS},
    **{f"quotient_{t}": njit(**EXACT)(lambda a, b: a // b) for t in KINDS},
    **{f"remainder_{t}": njit(**EXACT)(lambda a, b: a % b) for t in KINDS},
    **{f"atan2_{t}": njit(**EXACT)(lambda a, b: np.arctan2(a, b)) for t in KINDS},
    **{f"hypot_{t}": njit(**EXACT)(lambda a, b: np.hypot(a, b)) for t in KINDS},
}  # fmt: skip


@cache
def compiled(name: str, arguments: tuple[Any, ...]) -> Any:
    """What Numba made of one of the functions, for arguments of given types."""
    function = NAMES[name]
    function.compile(arguments)
    return function.overloads[arguments]
