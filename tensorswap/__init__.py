"""tensorswap: index-loop statements, and their derivatives as programs of the same language."""

from typing import Any

from .backslash import backslash, path_weights
from .debug import debug
from .eager import Function, Tensor, apply, define, register, tensor
from .eager.products import einsum
from .errors import SwapError, SwapWarning
from .gradcheck import gradcheck
from .library import ops
from .program import Program, load, program
from .training.fit import fit
from .training.step import step

__all__ = [
    "Function",
    "Program",
    "SwapError",
    "SwapWarning",
    "Tensor",
    "apply",
    "backslash",
    "debug",
    "define",
    "einsum",
    "fit",
    "gradcheck",
    "load",
    "ops",
    "path_weights",
    "program",
    "register",
    "step",
    "tensor",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`ts.torch` and `ts.jax`, whose frameworks are imported when they are first asked for."""
    if name not in ("torch", "jax"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .bridges import bridge

    return globals().setdefault(name, bridge(name))
