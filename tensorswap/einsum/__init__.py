"""einsum: numpy's function as index-loop statements, compiled, and with gradients (see eager/products.py)."""

from .recipe import einsum_program

__all__ = ["einsum_program"]
