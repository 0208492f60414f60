"""explain: a program -> a text with each statement and the rule that made each of its adjoint statements."""

from __future__ import annotations

from .errors import DerivativeError
from .language import ir, render
from .rules.activity import default_wrt
from .rules.adjoint import derive


def explain(loops: ir.Loops) -> str:
    """Each statement in order; under it its adjoint statements, each with its rule."""
    wrt = default_wrt(loops)
    if not wrt:
        return "\n".join([*render.lines(loops.body), "", "no input has a derivative here"])
    try:
        _, notes = derive(loops, wrt)
    except DerivativeError as error:
        return "\n".join([*render.lines(loops.body), "", f"the derivative is refused: {error}"])
    result: list[str] = []

    def show(body: tuple[ir.Item, ...], indent: str) -> None:
        for item in body:
            if isinstance(item, ir.Block):
                result.append(f"{indent}for {item.index}{' down' if item.down else ''}:")
                show(item.body, indent + "    ")
                continue
            assert isinstance(item, ir.Statement)
            result.append(indent + render.statement(item))
            found = [n for n in notes if n.forward is item]
            width = max((len(render.statement(n.adjoint)) for n in found), default=0)
            for note in found:
                result.append(f"{indent}    -> {render.statement(note.adjoint):<{width}}  # {note.rule}")
            if not found:
                result.append(f"{indent}    -> nothing: no path to a derivative")

    show(loops.body, "")
    return "\n".join(result)
