"""Functions that numpy does not have in one call: the language has them, so they run as compiled programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .apply import apply
from .scalar import RULES, Scalar
from .tensor import Tensor


@dataclass(frozen=True)
class Compiled:
    """A function of one argument, by its name in the language."""

    name: str

    def __call__(self, operand: Any) -> Any:
        if type(operand) is Scalar:
            return RULES[self.name](operand)
        made = apply(f"Y[...] = {self.name}(X[...])", X=operand)
        return made if isinstance(operand, Tensor) else made.value


sigmoid = Compiled("sigmoid")
silu = Compiled("silu")
gelu = Compiled("gelu")
softplus = Compiled("softplus")
erf = Compiled("erf")
