"""Calls outside of graphs: a step of autograd, which costs a fraction of what the dispatch of an operator does.

PyTorch traces through operators alone, so whatever traces gets those. Everything else, with the transforms of
torch.func, runs here: values, gradients, tangents and batches come from the same work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .family import Numbers, Tensors, Work, back_from, batches, keep_for_back, tangents
from .library_operators import operators

PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
transforms_active = torch._C._are_functorch_transforms_active
modes_active = torch._C._len_torch_dispatch_stack
forward_mode = torch.autograd.forward_ad


def launch(work: Work, tensors: Tensors, numbers: Numbers) -> Sequence[Any]:
    """Runs a call: as an operator where something traces it, else as a step of autograd, or with none if none asks."""
    watched = False
    for tensor in tensors:
        if type(tensor) not in PLAIN:
            return operators(work.family.program).launch(work, tensors, numbers)
        watched = watched or tensor.requires_grad
    if modes_active():
        return operators(work.family.program).launch(work, tensors, numbers)
    if transforms_active() or forward_mode._current_level >= 0:
        made = TransformedStep.apply(work, numbers, *tensors)
    elif watched and torch.is_grad_enabled():
        made = Step.apply(work, numbers, *tensors)
    else:
        return work.values(tensors, numbers)
    return (made,) if work.single else made


class Step(torch.autograd.Function):
    """A call with its way back."""

    @staticmethod
    def forward(ctx: Any, work: Work, numbers: Numbers, *tensors: Any) -> Any:
        made = work.values(tensors, numbers)
        keep_for_back(ctx, work, tensors, numbers, ctx.needs_input_grad[2:])
        return made[0] if work.single else tuple(made)

    @staticmethod
    def backward(ctx: Any, *seeds: Any) -> tuple[Any, ...]:
        return (None, None, *back_from(ctx, launch, seeds))


def _of_output(dot: Any, shape: Any, dtype: torch.dtype, device: torch.device) -> Any:
    """The tangent of an output, which PyTorch wants to be there where one can be, and nowhere else."""
    if not dtype.is_floating_point:
        return None
    return torch.zeros(shape, dtype=dtype, device=device) if dot is None else dot


class TransformedStep(torch.autograd.Function):
    """The same for torch.func and forward mode, which ask for the context apart: that takes PyTorch longer."""

    @staticmethod
    def forward(work: Work, numbers: Numbers, *tensors: Any) -> Any:
        made = work.values(tensors, numbers)
        return made[0] if work.single else tuple(made)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        work, numbers, *tensors = inputs
        keep_for_back(ctx, work, tensors, numbers, tuple(ctx.needs_input_grad[2:]))
        ctx.save_for_forward(*tensors)
        ctx.outputs = [
            (out.shape, out.dtype, out.device) for out in (output if isinstance(output, tuple) else (output,))
        ]

    backward = Step.backward

    @staticmethod
    def jvp(ctx: Any, *dots: Any) -> Any:
        work, numbers, _, _ = ctx.call
        found = tangents(launch, work, ctx.saved_tensors, numbers, dots[2:])
        made = [_of_output(dot, *output) for dot, output in zip(found, ctx.outputs, strict=True)]
        return made[0] if work.single else tuple(made)

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[Any], work: Work, numbers: Numbers, *tensors: Any) -> Any:
        results, places = batches(launch, work, tensors, numbers, in_dims[2:])
        return (results[0], places[0]) if work.single else (tuple(results), tuple(places))
