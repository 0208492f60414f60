"""Fixed programs with their JAX twins: what the derivatives, and every backend, are checked against."""

from __future__ import annotations

from . import algebra, convolutions, dynamic, elementwise, indexing, networks, reductions, sequences
from .entry import Entry

FAMILIES = (algebra, convolutions, dynamic, elementwise, indexing, networks, reductions, sequences)
CORPUS = tuple(value for family in FAMILIES for value in vars(family).values() if isinstance(value, Entry))

__all__ = ["CORPUS", "Entry"]
