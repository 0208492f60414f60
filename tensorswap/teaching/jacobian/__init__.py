"""Jacobians for those who want them: as a program, as a pattern of nonzeros, and in compressed form."""

from .compress import Compressed, SparseJacobian, compressed
from .entries import jacobian
from .pattern import Pattern
from .sparsity import Sparsity, sparsity

__all__ = ["Compressed", "Pattern", "SparseJacobian", "Sparsity", "compressed", "jacobian", "sparsity"]
