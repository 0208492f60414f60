"""Backpropagation as back substitution: a program's derivative as one triangular system with operators as entries."""

from .cost import Work
from .linearize import backslash
from .operators import (
    Composition,
    Hadamard,
    Identity,
    Kronecker,
    Left,
    Operator,
    Restricted,
    Right,
    Scale,
    Sum,
    Trace,
    Transposed,
    Zero,
)
from .pair import Pair
from .path_weights import PathWeights, path_weights
from .spaces import BlockDiagonal, Plain, Space, Symmetric, check_space
from .system import System

__all__ = [
    "BlockDiagonal", "Composition", "Hadamard", "Identity", "Kronecker", "Left", "Operator", "Pair", "PathWeights",
    "Plain", "Restricted", "Right", "Scale", "Space", "Sum", "Symmetric", "System", "Trace", "Transposed", "Work",
    "Zero", "backslash", "check_space", "path_weights",
]  # fmt: skip
