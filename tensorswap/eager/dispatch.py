"""Which rule answers to which name: Python's operators and the methods of tensors, numpy's ufuncs and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import ArgumentError
from . import comparisons as compare
from . import compiled, products, reductions, shaping
from . import elementwise as e
from .graph import backward
from .make import constant, plain, tensor
from .tensor import OPERATIONS, Tensor

ELEMENTWISE = [rule for rule in vars(e).values() if isinstance(rule, e.One | e.Two)]
UFUNCS: dict[Any, Callable[..., Any]] = {
    **{rule.function: rule for rule in ELEMENTWISE if isinstance(rule.function, np.ufunc)}, np.fabs: e.absolute,
    np.add: e.add, np.subtract: e.subtract, np.multiply: e.multiply, np.divide: e.divide,
    np.floor_divide: e.floor_divide, np.remainder: e.remainder, np.power: e.power, np.negative: e.negative,
    np.positive: lambda t: t, np.matmul: products.matmul, np.less: compare.less, np.less_equal: compare.less_equal,
    np.greater: compare.greater, np.greater_equal: compare.greater_equal, np.equal: compare.equal,
    np.not_equal: compare.not_equal,
}  # fmt: skip

FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: reductions.sum, np.mean: reductions.mean, np.max: reductions.max, np.min: reductions.min,
    np.prod: reductions.prod, np.var: reductions.var, np.std: reductions.std, np.reshape: shaping.reshape,
    np.ravel: shaping.ravel, np.transpose: shaping.transpose, np.swapaxes: shaping.swapaxes,
    np.moveaxis: shaping.moveaxis, np.expand_dims: shaping.expand_dims, np.squeeze: shaping.squeeze,
    np.broadcast_to: shaping.broadcast_to, np.concatenate: shaping.concatenate, np.stack: shaping.stack,
    np.where: shaping.where, np.dot: products.dot, np.einsum: products.einsum,
    np.clip: lambda t, low, high: e.minimum(e.maximum(t, low), high),
}  # fmt: skip

# Questions about values, and arrays like another: what they give is plain, and has no derivative.
PLAIN_UFUNCS = {np.isfinite, np.isinf, np.isnan, np.signbit, np.logical_and, np.logical_or, np.logical_not}
PLAIN = {
    np.shape, np.ndim, np.size, np.argmax, np.argmin, np.argsort, np.allclose, np.isclose, np.array_equal,
    np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.all, np.any, np.count_nonzero,
}  # fmt: skip


def ufunc(asked: Any, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What numpy calls instead of a ufunc that meets a tensor."""
    name = f"np.{asked.__name__}"
    if method != "__call__":
        raise ArgumentError(f"{name}.{method} has no rule for tensors", hint="np.sum, np.prod, np.max and the like do")
    if settings:
        raise ArgumentError(f"{name} takes no {next(iter(settings))}= with tensors", hint=f"write {name}(t)")
    if asked in UFUNCS:
        return UFUNCS[asked](*inputs)
    if asked in PLAIN_UFUNCS:
        return asked(*(plain(x) for x in inputs))
    raise _unknown(name)


def function(asked: Any, arguments: Iterable[Any], settings: dict[str, Any]) -> Any:
    """What numpy calls instead of any other function that meets a tensor."""
    name = f"np.{asked.__name__}"
    if asked in FUNCTIONS:
        try:
            return FUNCTIONS[asked](*arguments, **settings)
        except TypeError as error:
            raise ArgumentError(f"{name} on tensors: {error}", hint="the less common settings have no rule") from error
    if asked in PLAIN:
        return asked(*(_inner(a) for a in arguments), **{k: _inner(v) for k, v in settings.items()})
    raise _unknown(name)


def _inner(value: Any) -> Any:
    return value.value if isinstance(value, Tensor) else value


def _unknown(name: str) -> ArgumentError:
    return ArgumentError(
        f"{name} has no rule for tensors",
        hint="use t.value if no gradient should go through, ts.apply for a program, ts.Function for a rule of your own",
    )


OPERATIONS.update(
    tensor=tensor, constant=constant, backward=backward, ufunc=ufunc, function=function, add=e.add,
    subtract=e.subtract, multiply=e.multiply, divide=e.divide, floor_divide=e.floor_divide, remainder=e.remainder,
    power=e.power, matmul=products.matmul, negative=e.negative, absolute=e.absolute, getitem=shaping.getitem,
    less=compare.less, less_equal=compare.less_equal, greater=compare.greater, greater_equal=compare.greater_equal,
    equal=compare.equal, not_equal=compare.not_equal, exp=e.exp, log=e.log, sqrt=e.sqrt, sin=e.sin, cos=e.cos,
    tanh=e.tanh, relu=e.relu, sigmoid=compiled.sigmoid, gelu=compiled.gelu, sum=reductions.sum, mean=reductions.mean,
    prod=reductions.prod, max=reductions.max, min=reductions.min, reshape=shaping.reshape, transpose=shaping.transpose,
)  # fmt: skip
