"""The scalar functions of the language, in numpy; the random ones are pure functions of their integer arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(x: Array) -> Array:
    return np.asarray(_erf(x)).astype(x.dtype) if x.size else x


def sigmoid(x: Array) -> Array:
    """Without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def gelu(x: Array) -> Array:
    half = x.dtype.type(0.5)
    return np.asarray(half * x * (1 + erf(x * x.dtype.type(math.sqrt(0.5)))))


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "sign": np.sign, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "log1p": np.log1p,
    "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "sigmoid": sigmoid,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)), "gelu": gelu, "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.logaddexp(x.dtype.type(0), x), "erf": erf, "floor": np.floor, "ceil": np.ceil,
    "round": np.round, "stop": lambda x: x, "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot,
    "min": lambda *a: reduce(np.minimum, a), "max": lambda *a: reduce(np.maximum, a),
}  # fmt: skip

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the argument reaches every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def counter(arguments: list[NDArray[np.int64]]) -> NDArray[np.uint64]:
    """64 random bits that depend on all of the arguments and on their order."""
    state: NDArray[np.uint64] = np.asarray(GOLDEN)
    for argument in arguments:
        state = mix((state + GOLDEN) ^ mix(argument.astype(np.int64).view(np.uint64) + GOLDEN))
    return state


def _unit(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform(arguments: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """In [0, 1)."""
    return _unit(counter(arguments))


def normal(arguments: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Standard normal, by Box and Muller."""
    bits = counter(arguments)
    radius = np.sqrt(-2 * np.log(1 - _unit(bits)))
    return np.asarray(radius * np.cos(2 * np.pi * _unit(mix(bits + GOLDEN))))


RANDOM = {"uniform": uniform, "normal": normal}
