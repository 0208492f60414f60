"""What a derived program inherits though its text may not show it: the names that a caller may still pass."""

from __future__ import annotations

from ..language import ir

NOTHING = ir.Number(0.0)  # a derivative that is zero is a floating-point number like any other


def still_known(loops: ir.Loops) -> dict[str, int]:
    """The forward program's inputs with their ranks, and its indices: a derivative takes them, used or not."""
    found = dict(loops.known)
    found.update({name: loops.ranks.get(name, loops.known.get(name, 0)) for name in loops.inputs})
    found.update(dict.fromkeys(loops.indices, -1))
    return found


def known_tensors(loops: ir.Loops) -> list[str]:
    """Tensors that a caller may pass although nothing reads them."""
    return [name for name, rank in loops.known.items() if rank >= 0 and name not in loops.written]
