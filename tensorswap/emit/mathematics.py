"""Scalar functions for kernels: straight-line code that LLVM vectorises where that pays, Numba's own elsewhere.

exp and what is made of it reduce the argument by powers of two and use a polynomial (float32) or a rational function
(float64). NaN stays NaN, overflow gives inf, underflow 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import njit, types
from numba.extending import intrinsic

FASTMATH = {"reassoc", "contract", "nsz", "arcp", "afn"}  # never nnan or ninf: NaN stays NaN
OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy"}
# Without reassoc: the argument of exp is reduced in two steps whose order carries the last digits.
EXACT: dict[str, Any] = {"fastmath": {"contract", "nsz"}, "error_model": "numpy", "forceinline": True}

f4, f8 = np.float32, np.float64


@intrinsic
def single_of_bits(typing_context: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], llvm.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def double_of_bits(typing_context: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], llvm.DoubleType())

    return types.float64(types.int64), codegen


@njit(**EXACT)
def maximum(a, b):  # type: ignore[no-untyped-def]  # typed by Numba, for every type of number
    return a if a > b or a != a else b


@njit(**EXACT)
def minimum(a, b):  # type: ignore[no-untyped-def]  # as above
    return a if a < b or a != a else b


@njit(**EXACT)
def square(x):  # type: ignore[no-untyped-def]  # as above
    return x * x


@njit(**EXACT)
def above(new, best, position, held):  # type: ignore[no-untyped-def]  # as above
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


@njit(**EXACT)
def exp_f4(x):  # type: ignore[no-untyped-def]  # float32 -> float32
    z = x if x > f4(-104) else f4(-104)
    z = z if z < f4(89) else f4(89)
    n = np.floor(z * f4(1.4426950408889634) + f4(0.5))
    r = (z - n * f4(0.693359375)) + n * f4(2.12194440e-4)
    p = f4(1.9875691500e-4)
    p = p * r + f4(1.3981999507e-3)
    p = p * r + f4(8.3334519073e-3)
    p = p * r + f4(4.1665795894e-2)
    p = p * r + f4(1.6666665459e-1)
    p = p * r + f4(5.0000001201e-1)
    whole = np.int32(n)
    half = whole >> np.int32(1)  # two factors, so that neither leaves the range of a normal number
    first = single_of_bits((half + np.int32(127)) << np.int32(23))
    second = single_of_bits((whole - half + np.int32(127)) << np.int32(23))
    y = (p * r * r + r + f4(1)) * first * second
    return y if x == x else x


@njit(**EXACT)
def exp_f8(x):  # type: ignore[no-untyped-def]  # float64 -> float64
    z = x if x > -746.0 else -746.0
    z = z if z < 710.0 else 710.0
    n = np.floor(z * 1.4426950408889634 + 0.5)
    r = (z - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6
    rr = r * r
    p = r * ((1.26177193074810590878e-4 * rr + 3.02994407707441961300e-2) * rr + 9.99999999999999999910e-1)
    q = ((3.00198505138664455042e-6 * rr + 2.52448340349684104192e-3) * rr + 2.27265548208155028766e-1) * rr + 2.0
    whole = np.int64(n)
    half = whole >> np.int64(1)
    first = double_of_bits((half + np.int64(1023)) << np.int64(52))
    second = double_of_bits((whole - half + np.int64(1023)) << np.int64(52))
    y = (1.0 + 2.0 * (p / (q - p))) * first * second
    return y if x == x else x


@njit(**EXACT)
def sigmoid_f4(x):  # type: ignore[no-untyped-def]  # float32 -> float32
    return f4(1) / (f4(1) + exp_f4(-x))


@njit(**EXACT)
def sigmoid_f8(x):  # type: ignore[no-untyped-def]  # float64 -> float64
    return 1.0 / (1.0 + exp_f8(-x))


@njit(**EXACT)
def tanh_f4(x):  # type: ignore[no-untyped-def]  # float32 -> float32
    a = abs(x)
    z = x * x
    p = f4(-5.70498872745e-3)
    p = p * z + f4(2.06390887954e-2)
    p = p * z + f4(-5.37397155531e-2)
    p = p * z + f4(1.33314422036e-1)
    p = p * z + f4(-3.33332819422e-1)
    small = p * z * x + x
    large = f4(1) - f4(2) / (exp_f4(a + a) + f4(1))
    large = large if x > f4(0) else -large
    return small if a < f4(0.625) else large


@njit(**EXACT)
def tanh_f8(x):  # type: ignore[no-untyped-def]  # float64 -> float64
    a = abs(x)
    z = x * x
    p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3
    q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3
    small = x + x * z * (p / q)
    large = 1.0 - 2.0 / (exp_f8(a + a) + 1.0)
    large = large if x > 0.0 else -large
    return small if a < 0.625 else large


def _both(name: str, function: Callable[[Any], Any]) -> dict[str, Any]:
    """One of Numba's own functions, under the names that kernels use."""
    wrapped = njit(**EXACT)(function)
    return {f"{name}_f4": wrapped, f"{name}_f8": wrapped}


@njit(**EXACT)
def gelu_f4(x):  # type: ignore[no-untyped-def]  # float32 -> float32
    return f4(0.5) * x * (f4(1) + f4(math.erf(x * f4(0.7071067811865476))))


@njit(**EXACT)
def gelu_f8(x):  # type: ignore[no-untyped-def]  # float64 -> float64
    return 0.5 * x * (1.0 + math.erf(x * 0.7071067811865476))


@njit(**EXACT)
def silu_f4(x):  # type: ignore[no-untyped-def]  # float32 -> float32
    return x * sigmoid_f4(x)


@njit(**EXACT)
def silu_f8(x):  # type: ignore[no-untyped-def]  # float64 -> float64
    return x * sigmoid_f8(x)


@njit(**EXACT)
def softplus_f4(x):  # type: ignore[no-untyped-def]  # float32 -> float32
    return maximum(x, f4(0)) + f4(np.log1p(exp_f4(-abs(x))))


@njit(**EXACT)
def softplus_f8(x):  # type: ignore[no-untyped-def]  # float64 -> float64
    return maximum(x, 0.0) + np.log1p(exp_f8(-abs(x)))


@njit(**EXACT)
def integer_power(base, exponent):  # type: ignore[no-untyped-def]  # int64, int64 -> int64
    result = np.int64(1)
    for _ in range(exponent):
        result *= base
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
    "maximum": maximum, "minimum": minimum, "square": square, "above": above, "below": below, "exp_f4": exp_f4,
    "exp_f8": exp_f8, "sigmoid_f4": sigmoid_f4, "sigmoid_f8": sigmoid_f8, "tanh_f4": tanh_f4, "tanh_f8": tanh_f8,
    "gelu_f4": gelu_f4, "gelu_f8": gelu_f8, "silu_f4": silu_f4, "silu_f8": silu_f8, "softplus_f4": softplus_f4,
    "softplus_f8": softplus_f8, "pow_i8": integer_power, "GOLDEN": GOLDEN, "mixed": mixed, "uniform": unit,
    "normal": normal, "abs_i8": njit(**EXACT)(lambda x: abs(x)), "sign_i8": njit(**EXACT)(lambda x: np.sign(x)),
    **{f"{name}_i8": keep for name in ("floor", "ceil", "round")},
    **_both("abs", lambda x: abs(x)), **_both("sign", lambda x: np.sign(x)), **_both("sqrt", lambda x: np.sqrt(x)),
    **_both("log", lambda x: np.log(x)), **_both("log1p", lambda x: np.log1p(x)),
    **_both("expm1", lambda x: np.expm1(x)), **_both("sin", lambda x: np.sin(x)), **_both("cos", lambda x: np.cos(x)),
    **_both("tan", lambda x: np.tan(x)), **_both("asin", lambda x: np.arcsin(x)),
    **_both("acos", lambda x: np.arccos(x)), **_both("atan", lambda x: np.arctan(x)),
    **_both("sinh", lambda x: np.sinh(x)), **_both("cosh", lambda x: np.cosh(x)),
    **_both("erf", lambda x: math.erf(x)), **_both("floor", lambda x: np.floor(x)),
    **_both("ceil", lambda x: np.ceil(x)), **_both("round", lambda x: np.rint(x)),
    **{f"pow_{t}": njit(**EXACT)(lambda a, b: np.power(a, b)) for t in ("f4", "f8")},
    **{f"quotient_{t}": njit(**EXACT)(lambda a, b: a // b) for t in ("f4", "f8")},
    **{f"remainder_{t}": njit(**EXACT)(lambda a, b: a % b) for t in ("f4", "f8")},
    **{f"atan2_{t}": njit(**EXACT)(lambda a, b: np.arctan2(a, b)) for t in ("f4", "f8")},
    **{f"hypot_{t}": njit(**EXACT)(lambda a, b: np.hypot(a, b)) for t in ("f4", "f8")},
}  # fmt: skip


@cache
def compiled(name: str, arguments: tuple[Any, ...]) -> Any:
    """What Numba made of one of the functions, for arguments of given types."""
    function = NAMES[name]
    function.compile(arguments)
    return function.overloads[arguments]
