"""PyTorch's tensors <-> numpy's arrays, without copies; what cannot be one is refused in PyTorch's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ...arrays import Array
from ...errors import ArgumentError, DtypeError, SwapError

DTYPES: dict[Any, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.bool: np.dtype(np.bool_),
    **{getattr(torch, name): np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8")},
    **{getattr(torch, name): np.dtype(name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)},
}
BACK = {dtype: own for own, dtype in DTYPES.items()}
WORDS = {
    ".astype(np.float32)": ".float()",
    ".astype(np.int64)": ".long()",
    "pass a numpy array": "pass a tensor",
}
is_batched_by_autograd = torch._C._functorch.is_legacy_batchedtensor


def as_numpy(name: str, tensor: Any, error: Exception | None = None) -> Array:
    """The elements of a tensor that has no plain view of its memory, if they can be had; else why not."""
    check(name, tensor)
    if tensor.is_neg():  # its elements are negated when they are read: there are none like that in memory
        array: Array = tensor.detach().resolve_neg().numpy()
        return array
    if is_batched_by_autograd(tensor):
        raise ArgumentError(
            f"{name} is a batch of torch.autograd's own (is_grads_batched, vectorize), which programs have no rule for",
            hint="torch.func.vmap, jacrev, jacfwd and hessian have one; vectorize=False is right too",
        ) from error
    raise ArgumentError(
        f"{name} cannot be read as an array: {str(error)[:200]}", hint="pass a tensor in the memory of this machine"
    ) from error


def as_torch(array: Array) -> Any:
    """The memory of an array as a tensor, which owns it from now on."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def check(name: str, tensor: Any) -> None:
    """Refuses a tensor that is not an array in the memory of this machine, or of another type."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise ArgumentError(f"{name} is not a dense tensor", hint=f"convert it: {name}.to_dense()")
    if tensor.device.type != "cpu" and not tensor.is_meta:
        raise ArgumentError(
            f"{name} is on the device {tensor.device}, and programs run on the CPU", hint=f"move it: {name}.cpu()"
        )
    if tensor.is_complex():
        raise DtypeError(
            f"{name} has dtype {tensor.dtype}, which programs do not compute with",
            hint=f"pass two inputs, {name}.real and {name}.imag",
        )
    if tensor.dtype not in DTYPES:
        raise DtypeError(
            f"{name} has dtype {tensor.dtype}, which programs do not compute with",
            hint=f"convert it: {name}.float()",
        )


def in_torch_words(error: SwapError) -> SwapError:
    """The same error, with a cure for tensors in the place of one for arrays."""
    faults = []
    for fault in error.faults:
        hint = fault.hint
        for old, new in WORDS.items():
            hint = hint.replace(old, new)
        faults.append(replace(fault, hint=hint))
    return type(error)(faults)
