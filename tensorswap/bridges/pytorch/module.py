"""ts.torch.Module: a program as a layer that owns some of its inputs as parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ...errors import ArgumentError
from ...language.hints import closest
from ...program import Program, program_of
from ...training.initial import drawn, fans, is_word
from .tensors import DTYPES, as_torch, check
from .torch_program import TorchProgram


class Module(torch.nn.Module):
    """A layer: `params` names the inputs that it owns, each by a shape, by a word and a shape, or by its first value.

        layer = ts.torch.Module("Y[b,o] += X[b,i] * W[o,i]", params={"W": (10, 64)})
        y = layer(x)

    It is called with the other inputs, by name or in their order. Options, such as `stride=2`, go with every call.
    """

    def __init__(self, program: Program | str, params: Mapping[str, Any], *, dtype: Any = None, **options: Any) -> None:
        super().__init__()
        made = program_of(program, "ts.torch.Module", 'ts.torch.Module("Y[i] = a[i] * X[i]", params={"a": (3,)})')
        self.function = TorchProgram(made)
        self.options = options
        self.owned = tuple(params) if isinstance(params, Mapping) else ()
        self.names = tuple(name for name in made.inputs if name not in self.owned)
        for name, value in _first_values(made, params, torch.get_default_dtype() if dtype is None else dtype).items():
            if hasattr(self, name):
                raise ArgumentError(
                    f"a module of PyTorch's has a {name} of its own, so no parameter can have that name",
                    hint=f"rename it in the program, such as {name}_0",
                )
            if "." in name:
                raise ArgumentError(
                    f"a module of PyTorch's has no dots in its names, so {name} can be no parameter",
                    hint="leave it out of params, and pass it with each call",
                )
            self.register_parameter(name, torch.nn.Parameter(value))

    def forward(self, *tensors: Any, **named: Any) -> Any:
        """One output: that tensor; several: a dict by name."""
        if len(tensors) > len(self.names):
            raise ArgumentError(
                f"the layer is given {len(tensors)} tensors", hint=f"it takes {', '.join(self.names) or 'none'}"
            )
        given = dict(zip(self.names, tensors, strict=False))
        twice = next((name for name in named if name in given or name in self.owned), None)
        if twice is not None:
            owner = "as a parameter of the layer" if twice in self.owned else "by its place"
            raise ArgumentError(f"{twice} is given twice", hint=f"it is there already, {owner}")
        owned = {name: getattr(self, name) for name in self.owned}  # which others may have made properties of
        return self.function(**{**self.options, **owned, **given, **named})

    def extra_repr(self) -> str:
        told = [f"{name}: {tuple(getattr(self, name).shape)}" for name in self.owned]
        return "\n".join([", ".join([*told, *(f"{name}={value}" for name, value in self.options.items())]),
                          *str(self.function.program).splitlines()])  # fmt: skip


def _first_values(program: Program, params: Any, dtype: Any) -> dict[str, Any]:
    """Tensors that nothing else holds."""
    if not isinstance(params, Mapping):
        raise ArgumentError("params is a dict of parameters by name", hint='params={"W": (10, 64)}')
    for name in params:
        if name not in program.inputs:
            hint = closest(name, program.inputs, "its inputs are") if isinstance(name, str) else "names are texts"
            raise ArgumentError(f"the program has no input {str(name)[:80]!r}", hint=hint)
    if dtype not in DTYPES or DTYPES[dtype].kind != "f":
        raise ArgumentError(f"parameters cannot be of dtype {dtype}", hint="torch.float32 or torch.float64")
    given = {n: v for n, v in params.items() if isinstance(v, torch.Tensor)}
    others = {n: _way(program, n, v) for n, v in params.items() if n not in given}
    seed = int(torch.randint(2**62, ()))  # of PyTorch's own generator: torch.manual_seed repeats it
    made = drawn(program.loops, others, {}, seed, DTYPES[dtype])
    own = {name: _own(name, value) for name, value in given.items()}
    return {name: own[name] if name in own else as_torch(made[name]) for name in params}


def _own(name: str, tensor: Any) -> Any:
    check(name, tensor)
    if not tensor.is_floating_point():
        raise ArgumentError(f"the parameter {name} has dtype {tensor.dtype}", hint=f"pass {name}.float()")
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _way(program: Program, name: str, value: Any) -> Any:
    """How a parameter starts: a shape alone means what nn.Linear has, or zeros where no sum runs over it."""
    if is_word(value) or not isinstance(value, tuple | torch.Size) or not all(isinstance(n, int) for n in value):
        return value
    rank = program.loops.ranks.get(name, len(value))
    summed = rank == len(value) and fans(program.loops, name, tuple(value))[0] > 1
    return ("uniform" if summed else "zeros", tuple(value))
