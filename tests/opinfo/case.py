"""What an adapter makes of one of PyTorch's samples: a program of ours with its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Tensor = torch.Tensor


class Unexpressed(Exception):
    """A sample that asks for what our op does not have; the text says what."""


def unchanged(tensor: Tensor) -> Tensor:
    return tensor


@dataclass(frozen=True)
class Case:
    """A call of ours that stands for a call of PyTorch's op.

    The tensors are made from those of the sample by views and copies, so that PyTorch carries our gradients back to
    them. `arrange` brings PyTorch's results into the layout of ours. The oracle is the sample's own call if it is None.
    """

    program: str  # the name of an op, or the text of a program
    tensors: dict[str, Tensor]
    options: dict[str, int | float | tuple[int, ...]] = field(default_factory=dict)
    arrange: Callable[[Any], Tensor | Sequence[Tensor]] = unchanged
    outputs: tuple[str, ...] = ()  # those to compare, in PyTorch's order; all if there are none
    oracle: Callable[[], Any] | None = None
    gradient: str = ""  # why PyTorch's gradient is not compared
    second: str = ""  # why its second derivative is not compared
    fixed: tuple[Tensor, ...] = ()  # tensors of the sample that have no gradient in PyTorch, but one here


Adapter = Callable[..., Case]
ADAPTERS: dict[str, Adapter] = {}


def adapts(*names: str) -> Callable[[Adapter], Adapter]:
    """Names the samples that an adapter takes: the op's name in PyTorch's table."""

    def register(adapter: Adapter) -> Adapter:
        for name in names:
            assert name not in ADAPTERS, name
            ADAPTERS[name] = adapter
        return adapter

    return register


def given(**tensors: Tensor | None) -> dict[str, Tensor]:
    """The tensors that a call does not leave out."""
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def same_kind(x: Tensor, *numbers: float) -> list[float]:
    """Numbers that meet whole numbers: PyTorch cuts them to whole ones, here the result has another type."""
    if x.is_floating_point():
        return list(numbers)
    if any(number != int(number) for number in numbers):
        raise Unexpressed("a number that is cut to a whole one")
    return [int(number) for number in numbers]


def each_number(value: Any, count: int) -> list[int]:
    numbers = [int(value)] * count if isinstance(value, int) else [int(v) for v in value]
    return numbers * count if len(numbers) == 1 else numbers


def rows(x: Tensor, dim: Any = None) -> Tensor:
    """The axes to reduce as one last axis; all of them if there is no dim."""
    if x.ndim == 0:
        return x.reshape(1)
    if dim is None or dim == () or dim == []:
        return x.reshape(-1)
    dims = sorted(d % x.ndim for d in ([dim] if isinstance(dim, int) else dim))
    kept = [d for d in range(x.ndim) if d not in dims]
    moved = x.permute(*kept, *dims)
    return moved.reshape(*(x.shape[d] for d in kept), math.prod(x.shape[d] for d in dims))


def without_kept(x: Tensor, dim: Any = None, keepdim: bool = False) -> Callable[[Tensor], Tensor]:
    """Takes off the axes of size 1 that keepdim leaves."""
    if not keepdim:
        return unchanged
    kept = rows(x.detach(), dim).shape[:-1]
    return lambda out: out.reshape(kept)


def filled(call: str, number: str) -> str:
    """The text of an op of what a mask leaves: a number that changes nothing takes the place of the others."""
    op, _, options = call.partition("(")
    call = f"{op}(left, {options}" if options else f"{op}(left)"
    return f"left[...,j] = input[...,j] if mask[...,j] else {number}\nout = {call}\nreturn out"


def masked(program: str, text: str, mask: Tensor | None, input: Tensor, view: Callable[[Tensor], Tensor]) -> Case:
    """An op, or a text that leaves elements out by a mask."""
    if mask is None:
        return Case(program, {"input": view(input)})
    return Case(text, {"input": view(input), "mask": view(mask.expand(input.shape))})


def last(x: Tensor, dim: int) -> Tensor:
    return x.reshape(1) if x.ndim == 0 else x.movedim(dim, -1)


def moved_back(x: Tensor, dim: int) -> Callable[[Tensor], Tensor]:
    """PyTorch's result with the axis that it worked along as the last one."""
    return lambda out: last(out, dim)


def same_type(x: Tensor, dtype: torch.dtype | None) -> None:
    if dtype is not None and dtype != x.dtype:
        raise Unexpressed("a result of another type")
