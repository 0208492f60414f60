"""Activations, and the functions and operators of the language itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

from .case import Case, Tensor, Unexpressed, adapts, filled, given, last, masked, moved_back, same_kind, same_type

PLAIN = {
    "nn.functional.relu": "relu_layer",
    "nn.functional.relu6": "relu6",
    "sigmoid": "sigmoid_layer",
    "tanh": "tanh_layer",
    "nn.functional.silu": "silu_layer",
    "nn.functional.hardswish": "hardswish",
    "nn.functional.selu": "selu",
    "nn.functional.mish": "mish",
    "nn.functional.logsigmoid": "logsigmoid",
    "nn.functional.softsign": "softsign",
    "nn.functional.tanhshrink": "tanhshrink",
}

FUNCTIONS = {
    "abs": "abs(X[...])",
    "acos": "acos(X[...])",
    "asin": "asin(X[...])",
    "atan": "atan(X[...])",
    "ceil": "ceil(X[...])",
    "cos": "cos(X[...])",
    "cosh": "cosh(X[...])",
    "erf": "erf(X[...])",
    "exp": "exp(X[...])",
    "expm1": "expm1(X[...])",
    "floor": "floor(X[...])",
    "log": "log(X[...])",
    "log1p": "log1p(X[...])",
    "neg": "-X[...]",
    "positive": "+X[...]",
    "reciprocal": "1 / X[...]",
    "sin": "sin(X[...])",
    "sinh": "sinh(X[...])",
    "sqrt": "sqrt(X[...])",
    "square": "X[...] ** 2",
    "tan": "tan(X[...])",
}

OPERATORS = {
    "atan2": "atan2(X[...], Z[...])",
    "eq": "X[...] == Z[...]",
    "ge": "X[...] >= Z[...]",
    "gt": "X[...] > Z[...]",
    "hypot": "hypot(X[...], Z[...])",
    "le": "X[...] <= Z[...]",
    "lt": "X[...] < Z[...]",
    "maximum": "max(X[...], Z[...])",
    "minimum": "min(X[...], Z[...])",
    "mul": "X[...] * Z[...]",
    "ne": "X[...] != Z[...]",
    "pow": "X[...] ** Z[...]",
    "float_power": "pow(X[...], Z[...])",
    "true_divide": "X[...] / Z[...]",
    "remainder": "X[...] % Z[...]",
    "floor_divide": "X[...] // Z[...]",
}


def plain(program: str) -> Any:
    def adapter(input: Tensor, inplace: bool = False) -> Case:
        return Case(program, {"input": input})

    return adapter


def function(text: str) -> Any:
    def adapter(input: Tensor) -> Case:
        return Case(f"Y[...] = {text}", {"X": input})

    return adapter


def operator(name: str, text: str) -> Any:
    def adapter(input: Any, other: Any) -> Case:
        tie = "PyTorch halves the gradient where both are equal" if name in ("maximum", "minimum") else ""
        if not isinstance(input, Tensor):
            raise Unexpressed("a number in front of a tensor")
        if name == "pow" and not input.is_floating_point():
            raise Unexpressed("a power of whole numbers that is a whole number")
        if not isinstance(other, Tensor):
            if isinstance(other, complex):
                raise Unexpressed("complex numbers")
            return Case(f"Y[...] = {text.replace('Z[...]', 'z')}", {"X": input}, {"z": other})
        X, Z = torch.broadcast_tensors(input, other)
        why = tie if tie and bool((X == Z).any()) else ""
        if name in ("atan2", "hypot") and bool(((X == 0) & (Z == 0)).any()):
            why = "no derivative at (0, 0), where PyTorch gives 0"
        return Case(f"Y[...] = {text}", {"X": X, "Z": Z}, gradient=why)

    return adapter


for name, program in PLAIN.items():
    adapts(name)(plain(program))
for name, text in FUNCTIONS.items():
    adapts(name)(function(text))
for name, text in OPERATORS.items():
    adapts(name)(operator(name, text))


def scaled(sign: str) -> Any:
    def adapter(input: Any, other: Any, alpha: float = 1) -> Case:
        if not isinstance(input, Tensor):
            raise Unexpressed("a number in front of a tensor")
        options: dict[str, Any] = {"alpha": alpha}
        if isinstance(alpha, complex) or isinstance(other, complex):
            raise Unexpressed("complex numbers")
        if not isinstance(other, Tensor):
            return Case(f"Y[...] = X[...] {sign} alpha * z", {"X": input}, options | {"z": other})
        X, Z = torch.broadcast_tensors(input, other)
        return Case(f"Y[...] = X[...] {sign} alpha * Z[...]", {"X": X, "Z": Z}, options)

    return adapter


adapts("add")(scaled("+"))
adapts("sub")(scaled("-"))


@adapts("div")
def div(input: Any, other: Any, rounding_mode: str | None = None) -> Case:
    text = {
        None: "X[...] / Z[...]",
        "floor": "X[...] // Z[...]",
        "trunc": "X[...] // Z[...] + (1 if X[...] % Z[...] != 0 and X[...] * Z[...] < 0 else 0)",
    }[rounding_mode]
    return operator("div", text)(input, other)


@adapts("sign")
def sign(input: Tensor) -> Case:
    if input.is_floating_point() and bool(input.isnan().any()):
        raise Unexpressed("0 for the sign of NaN")
    return Case("Y[...] = sign(X[...])", {"X": input})


@adapts("rsqrt")
def rsqrt(input: Tensor) -> Case:
    return Case("Y[...] = 1 / sqrt(X[...])", {"X": input})


@adapts("round")
def round_(input: Tensor, decimals: int = 0) -> Case:
    if decimals:
        raise Unexpressed("rounding to decimals")
    return Case("Y[...] = round(X[...])", {"X": input})


@adapts("where")
def where(input: Tensor, condition: Tensor, other: Tensor) -> Case:
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise Unexpressed("a number instead of a tensor")
    c, X, Z = torch.broadcast_tensors(condition, input, other)
    if X.dtype != Z.dtype:
        raise Unexpressed("a result of another type")
    return Case("Y[...] = X[...] if c[...] else Z[...]", {"X": X, "c": c, "Z": Z})


@adapts("addcmul")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: float = 1) -> Case:
    X, A, B = torch.broadcast_tensors(input, tensor1, tensor2)
    return Case("Y[...] = X[...] + value * A[...] * B[...]", {"X": X, "A": A, "B": B}, {"value": value})


@adapts("addcdiv")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: float = 1) -> Case:
    X, A, B = torch.broadcast_tensors(input, tensor1, tensor2)
    return Case("Y[...] = X[...] + value * A[...] / B[...]", {"X": X, "A": A, "B": B}, {"value": value})


@adapts("nn.functional.hardsigmoid")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Case:
    """PyTorch's own gradient multiplies by a sixth in float32."""
    return Case("hardsigmoid", {"input": input}, oracle=lambda: F.relu6(input + 3) / 6)


@adapts("nn.functional.gelu")
def gelu(input: Tensor, approximate: str = "none") -> Case:
    return Case("gelu_layer" if approximate == "none" else "gelu_tanh", {"input": input})


@adapts("nn.functional.softplus")
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Case:
    return Case("softplus_layer", {"input": input}, {"beta": beta, "threshold": threshold})


@adapts("nn.functional.hardtanh")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Case:
    low, high = same_kind(input, min_val, max_val)
    return Case("hardtanh", {"input": input}, {"min_val": low, "max_val": high})


def clamp_between(X: Tensor, low: Any, high: Any) -> Case:
    """Limits that are tensors; one that is a number is the same for all elements."""
    full = [x if x is None or isinstance(x, Tensor) else torch.full(X.shape, x, dtype=X.dtype) for x in (low, high)]
    tensors = given(input=X, min_val=full[0], max_val=full[1])
    if len({x.dtype for x in tensors.values()}) > 1:
        raise Unexpressed("a result of another type")
    stretched = torch.broadcast_tensors(*tensors.values())
    if len(tensors) == 2 and not X.is_floating_point():  # a limit that is left out is infinite, which no integer is
        text = "Y[...] = " + ("max(X[...], Z[...])" if high is None else "min(X[...], Z[...])")
        return Case(text, dict(zip("XZ", stretched, strict=True)))
    why = "" if stretched[0].shape == X.shape else "PyTorch's own gradient fails where the limits have more elements"
    return Case("clamp_between", dict(zip(tensors, stretched, strict=True)), gradient=why)


@adapts("clamp")
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Case:
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return clamp_between(input, min, max)
    limits = {name: value for name, value in (("min_val", min), ("max_val", max)) if value is not None}
    return Case("clamp", {"input": input}, limits)


@adapts("clamp_min")
def clamp_min(input: Tensor, min: Any) -> Case:
    return clamp(input, min)


@adapts("clamp_max")
def clamp_max(input: Tensor, max: Any) -> Case:
    return clamp(input, None, max)


@adapts("nn.functional.threshold")
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Case:
    return Case("threshold", {"input": input}, {"threshold": threshold, "value": value})


@adapts("nn.functional.leaky_relu")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Case:
    return Case("leaky_relu", {"input": input}, {"negative_slope": negative_slope})


@adapts("nn.functional.prelu")
def prelu(input: Tensor, weight: Tensor) -> Case:
    shape = input.shape if input.ndim > 1 else torch.Size((1, 1, input.numel()))
    flat = input.reshape(*shape[:2], math.prod(shape[2:]))
    slopes = weight.reshape(-1).expand(shape[1])
    return Case("prelu", {"input": flat, "weight": slopes}, arrange=lambda out: out.reshape(flat.shape))


@adapts("nn.functional.rrelu")
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Case:
    if training:
        raise Unexpressed("PyTorch's own random numbers")
    slope = torch.full(input.shape, (lower + upper) / 2, dtype=input.dtype)
    return Case("rrelu", {"input": input, "noise": slope})


def shrink(program: str) -> Any:
    def adapter(input: Tensor, lambd: float = 0.5) -> Case:
        return Case(program, {"input": input}, {"lambd": lambd})

    return adapter


adapts("nn.functional.hardshrink")(shrink("hardshrink"))
adapts("nn.functional.softshrink")(shrink("softshrink"))


@adapts("nn.functional.elu")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Case:
    return Case("elu", {"input": input}, {"alpha": alpha})


@adapts("nn.functional.celu")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Case:
    return Case("celu", {"input": input}, {"alpha": alpha})


@adapts("nn.functional.glu")
def glu(input: Tensor, dim: int = -1) -> Case:
    return Case("glu", {"input": last(input, dim)}, arrange=moved_back(input, dim))


def along(program: str, fill: str) -> Any:
    def adapter(input: Tensor, dim: int | None = None, dtype: Any = None, mask: Any = None, **rest: Any) -> Case:
        if dim is None:
            raise Unexpressed("a dim that PyTorch guesses")
        same_type(input, dtype)
        case = masked(program, filled(program, fill), mask, input, lambda x: last(x, dim))
        return replace(case, arrange=moved_back(input, dim))

    return adapter


adapts("softmax", "masked.softmax")(along("softmax", "-inf"))
adapts("nn.functional.softmin", "masked.softmin")(along("softmin", "inf"))
adapts("log_softmax", "masked.log_softmax")(along("log_softmax", "-inf"))
adapts("torch.ops.aten._safe_softmax.default")(along("safe_softmax", "-inf"))
adapts("logcumsumexp")(along("logcumsumexp", "-inf"))
adapts("cumsum", "masked.cumsum")(along("cumsum", "0"))
adapts("cumprod", "masked.cumprod")(along("cumprod", "1"))


@adapts("native_dropout_backward")
def dropout_with_mask(grad_output: Tensor, mask: Tensor, scale: float) -> Case:
    if scale < 1:
        raise Unexpressed("a scale that no rate has")
    return Case(
        "dropout_with_mask", {"input": grad_output, "mask": mask.to(grad_output.dtype).detach()}, {"p": 1 - 1 / scale}
    )
