"""Flat gradient code: a scalar program as straight-line Python, forward and then backward."""

from .python import flat

__all__ = ["flat"]
