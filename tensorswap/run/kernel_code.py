"""The machine code of kernels. The text of a kernel in Python tells it apart from all others."""

from __future__ import annotations

from functools import partial

from ..kernel import llvm, python
from ..kernel.ir import Kernel
from .known_code import Named


def named(kernel: Kernel) -> Named:
    """A kernel as a function to be found, or made."""
    return python.kernel(kernel), partial(llvm.entry, kernel)
