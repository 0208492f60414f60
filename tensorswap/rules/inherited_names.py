"""What a derived program inherits though its text may not show it: the names that a caller may still pass."""

from __future__ import annotations

from ..language import ir

NOTHING = ir.Number(0.0)  # a derivative that is zero is a floating-point number like any other


def pattern(loops: ir.Loops, tensor: str) -> ir.Access | None:
    """How a program accesses a tensor: tells its rank, and whether `...` stands for some of its axes."""
    return next((a for a in loops.accesses if a.tensor == tensor), loops.known.get(tensor))


def still_known(loops: ir.Loops) -> dict[str, ir.Access | None]:
    """The forward program's inputs and indices: a derivative takes them, used or not."""
    inputs = {name: pattern(loops, name) for name in loops.inputs}
    return {**loops.known, **dict.fromkeys(loops.indices), **inputs}


def known_tensors(loops: ir.Loops) -> list[str]:
    """Tensors that a caller may pass although nothing reads them."""
    return [name for name, access in loops.known.items() if access is not None and name not in loops.written]
