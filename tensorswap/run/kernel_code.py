"""The machine code of kernels. The text of a kernel in Python tells it apart from all others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..kernel import llvm, python
from ..kernel.ir import Kernel
from .known_code import Compiled, functions


def compiled(wanted: Sequence[Kernel]) -> list[Compiled]:
    """The code of each, from memory, from the disk, or made now."""
    return functions([(python.kernel(kernel), partial(llvm.entry, kernel)) for kernel in wanted])
