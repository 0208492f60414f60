"""Eager values: tensors that remember how they were computed. The graph is whatever Python ran, anew each time.

numpy's functions work on tensors (np.exp(t), np.sum(t, axis=0)); here stand those that numpy does not have.
"""

from . import dispatch as dispatch  # the table that tensors work by
from .apply import apply
from .compiled import erf, gelu, sigmoid, silu, softplus
from .custom import Function, register
from .define import define
from .elementwise import relu
from .make import tensor
from .tensor import Tensor

__all__ = [
    "Function", "Tensor", "apply", "define", "erf", "gelu", "register", "relu", "sigmoid", "silu", "softplus", "tensor",
]  # fmt: skip
