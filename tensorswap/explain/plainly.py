"""p.explain: each statement of a program, and the rule and pattern of each of its adjoint statements, line by line."""

from __future__ import annotations

from ..language import ir, render
from ..rules.unnest import unnest
from .explanation import Explanation, Statement, explanation


def explain(loops: ir.Loops) -> str:
    """Each statement in order; under it its adjoint statements, each with its rule and its patterns."""
    made = explanation(loops)
    if made.refused:
        return "\n".join([*render.lines(loops.body), "", made.refused])
    statements = iter(made.statements)
    result: list[str] = []

    def show(body: tuple[ir.Item, ...], indent: str) -> None:
        for item in body:
            if isinstance(item, ir.Block):
                result.append(f"{indent}for {item.index}{' down' if item.down else ''}:")
                show(item.body, indent + "    ")
            else:
                statement = next(statements)
                result.append(indent + statement.text)
                result.extend(f"{indent}    -> {line}" for line in _aligned(made, statement))

    show(unnest(loops).body, "")
    return "\n".join(result)


def _aligned(made: Explanation, statement: Statement) -> list[str]:
    adjoints = [made.adjoints[number - 1] for number in statement.adjoints]
    width = max((len(adjoint.text) for adjoint in adjoints), default=0)
    shown = [f"{a.text:<{width}}  # {a.rule}: {', '.join(a.patterns)}" for a in adjoints]
    return shown or ["nothing: no path to a derivative"]
