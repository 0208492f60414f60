"""explain: a program -> a text with each statement, and the rule and pattern of each of its adjoint statements."""

from __future__ import annotations

from .errors import DerivativeError
from .language import ir, render
from .patterns import flows
from .rules.activity import default_wrt


def explain(loops: ir.Loops) -> str:
    """Each statement in order; under it its adjoint statements, each with its rule and its patterns."""
    wrt = default_wrt(loops)
    if not wrt:
        return "\n".join([*render.lines(loops.body), "", "no input has a derivative here"])
    try:
        made = flows(loops, wrt)
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
            found = [flow for flow in made if flow.note.forward is item]
            width = max((len(render.statement(flow.note.adjoint)) for flow in found), default=0)
            for flow in found:
                shown = render.statement(flow.note.adjoint)
                result.append(f"{indent}    -> {shown:<{width}}  # {flow.note.rule}: {flow.text}")
            if not found:
                result.append(f"{indent}    -> nothing: no path to a derivative")

    show(loops.body, "")
    return "\n".join(result)
