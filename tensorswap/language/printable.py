"""Does a derived program fit into a text that the parser reads? It says so when it is derived, not when it is read."""

from __future__ import annotations

from ..errors import LimitError
from . import ir, limits, render

HINT = "write long expressions of the program as several statements: each is differentiated once"


def check_printable(loops: ir.Loops) -> None:
    """Refuses a program whose text would break a limit of the parser."""
    longest = max(loops.names, key=len, default="")
    if len(longest) > limits.NAME_LENGTH:
        raise LimitError(
            f"the derived name {longest[:40]}... has {len(longest)} characters; at most {limits.NAME_LENGTH} are read",
            hint="shorten the names of the program, or take fewer derivatives of derivatives",
        )
    for statement in loops.statements:
        for part in (*statement.target.indices, statement.value, *((statement.guard,) if statement.guard else ())):
            if ir.depth(part) > limits.EXPRESSION_DEPTH:
                raise LimitError(
                    f"a derived expression nests more than {limits.EXPRESSION_DEPTH} levels deep", hint=HINT
                )
        for node in statement.nodes:
            if isinstance(node, ir.Number) and isinstance(node.value, int) and abs(node.value) >= 2**63:
                raise LimitError(f"the derivative has the number {node.value}, which does not fit 64 bits")
    try:
        limits.check_text(render.program(loops))
    except LimitError as error:
        raise LimitError(f"the derivative cannot be written as a text: {error.faults[0].message}", hint=HINT) from None
