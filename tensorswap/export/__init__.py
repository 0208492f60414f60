"""Export: a program and its adjoint as one Python file that needs numpy and numba, not tensorswap."""

from .write import export

__all__ = ["export"]
