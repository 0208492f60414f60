"""ts.torch(p): a program as a function of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ...errors import DtypeError
from ...language.options import each_part
from ...program import Program
from ...run.arguments import merged
from .eager_step import PLAIN, launch
from .library_operators import operators

NUMBERS = (int, float, bool)


class TorchProgram:
    """A program as a function of tensors: called as the program is, under torch.compile and torch.func too."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.operators = operators(program)
        self._inputs = frozenset(program.inputs)
        self._options = bool(program.loops.options)
        self._single = len(program.outputs) == 1

    @property
    def op(self) -> Any:
        """The operator of torch.library: of the inputs in their order, None for one that is left out."""
        return self.operators.direct

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchProgram, (self.program,)

    def __repr__(self) -> str:
        return f"<ts.torch of {self.program!r}>"

    def __call__(self, mapping: Mapping[str, Any] | None = None, /, **tensors: Any) -> Any:
        """Runs the program. One output: that tensor; several: a dict by name."""
        arguments = tensors if mapping is None else merged(mapping, tensors)
        if self._options:
            arguments = each_part(self.program.loops, arguments)
        given, numbers = {}, {}
        for name, value in arguments.items():
            if name in self._inputs and (type(value) in PLAIN or isinstance(value, torch.Tensor)):
                given[name] = value
            elif value is not None:  # as PyTorch's own functions take a bias that is left out
                numbers[name] = self._number(name, value)
        if torch.compiler.is_compiling():
            made = self.operators.call(given, list(numbers), list(numbers.values()))
            return made if self._single else dict(zip(self.program.outputs, made, strict=True))
        work = self.operators.family.work("", (*given, *numbers), len(given))
        results = launch(work, tuple(given.values()), tuple(numbers.values()))
        return results[0] if self._single else dict(zip(self.program.outputs, results, strict=True))

    def _number(self, name: str, value: Any) -> int | float | bool:
        """A plain number: the value of a scalar, a static integer or a size."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, NUMBERS):
            return value
        loops = self.program.loops
        if name in loops.static_names or name in loops.indices:
            kind = "a tensor" if isinstance(value, torch.Tensor) else type(value).__name__
            raise DtypeError(f"{name} is a whole number, not {kind}", hint=f"pass {name}=1 or {name}=int(...)")
        if name not in self._inputs:
            return 0  # a name that the program does not know: it tells best
        maker = "torch.from_numpy" if isinstance(value, np.ndarray) else "torch.tensor"
        raise DtypeError(f"{name} is of type {type(value).__name__}, not a tensor", hint=f"pass {maker}({name})")
