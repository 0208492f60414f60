"""Normalisation."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (every PyTorch user knows it by this name)

from .case import Case, Tensor, Unexpressed, adapts, given


@adapts("nn.functional.layer_norm")
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Case:
    return over_last("layer_norm", input, normalized_shape, weight, bias, eps)


@adapts("nn.functional.rms_norm")
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Case:
    return over_last(
        "rms_norm", input, normalized_shape, weight, None, torch.finfo(input.dtype).eps if eps is None else eps
    )


def over_last(program: str, input: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Case:
    axes = len(shape)
    if axes == 2 and program == "layer_norm":
        return Case("layer_norm2d", given(input=input, weight=weight, bias=bias), {"eps": eps})

    def flat(x: Tensor | None) -> Tensor | None:
        return None if x is None else x.flatten(-axes)

    tensors = given(input=flat(input), weight=flat(weight), bias=flat(bias))
    return Case(program, tensors, {"eps": eps}, arrange=lambda out: out.flatten(-axes))


def channels(x: Tensor) -> Tensor:
    """Batch, channels, and the rest as one axis, or as an image."""
    if x.ndim == 4:
        return x
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def image(program: str, x: Tensor) -> str:
    return program.replace("_norm", "_norm2d", 1) if x.ndim == 4 else program


@adapts("nn.functional.group_norm")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Case:
    tensors = given(input=channels(input), weight=weight, bias=bias)
    return Case(image("group_norm", input), tensors, {"num_groups": num_groups, "eps": eps}, arrange=channels)


@adapts("nn.functional.instance_norm")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Case:
    if not use_input_stats:
        raise Unexpressed("a mean and a variance that are given")
    tensors = given(input=channels(input), weight=weight, bias=bias)
    return Case(
        image("instance_norm", input),
        tensors,
        {"eps": eps},
        arrange=channels,
        oracle=lambda: F.instance_norm(input, None, None, weight, bias, True, momentum, eps),
    )


@adapts("nn.functional.batch_norm")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Case:
    mean, variance = (None if x is None else x.detach().clone() for x in (running_mean, running_var))
    tensors = given(input=channels(input), weight=weight, bias=bias)
    if not training:
        tensors |= given(running_mean=mean, running_var=variance)
    return Case(
        image("batch_norm", input) + "_untracked" * training,
        tensors,
        {"eps": eps},
        arrange=channels,
        oracle=lambda: F.batch_norm(
            input, *(None if x is None else x.clone() for x in (mean, variance)), weight, bias, training, momentum, eps
        ),
    )


@adapts("native_batch_norm")
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Case:
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@adapts("native_layer_norm")
def native_layer_norm(input: Tensor, shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float) -> Case:
    case = over_last("layer_norm", input, shape, weight, bias, eps)
    return Case(case.program, case.tensors, case.options, arrange=lambda out: case.arrange(out[0]))


@adapts("nn.functional.local_response_norm")
def local_response_norm(
    input: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
) -> Case:
    def four(x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], math.prod(x.shape[2:]), 1) if x.ndim != 4 else x

    if not input.is_floating_point():
        raise Unexpressed("a mean of whole numbers that is cut to a whole number")
    options = {"window": size, "alpha": alpha, "beta": beta, "k": k}
    return Case("local_response_norm", {"input": four(input)}, options, arrange=four)
