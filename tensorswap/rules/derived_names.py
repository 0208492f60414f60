"""Names of derived tensors: `.grad`, `.dot`, or the next free number behind them, the same for a whole derivative."""

from __future__ import annotations

from ..language import ir


def next_suffix(loops: ir.Loops, kind: str) -> str:
    """`grad` if no name of the program has that part, else `grad2`, `grad3`, ..."""
    parts = {part for name in loops.names for part in name.split(".")[1:]}
    if kind not in parts:
        return kind
    return next(f"{kind}{n}" for n in range(2, len(parts) + 3) if f"{kind}{n}" not in parts)


def helper(loops: ir.Loops, tensor: str, kind: str, taken: set[str]) -> str:
    """A name for a value that a rule needs beside the tensor, such as Y.arg."""
    name = ir.fresh(f"{tensor}.{kind}", taken | loops.names)
    taken.add(name)
    return name
