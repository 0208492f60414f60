"""Rules in words: a sentence for each step between a statement and one of its adjoint statements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..language import ir
from ..language.functions import FUNCTIONS
from ..language.render import access as show_access
from ..language.render import statement as show_statement
from ..patterns import PASSES, Flow

GATES = {  # what a gate does to a gradient that comes back through it
    PASSES: "The value is passed on as it is, and so is its gradient.",
    "add distributes": "Each term of a sum gets the gradient as it is.",
    "subtract negates": "What is subtracted gets the gradient with a minus sign.",
    "minus negates": "A minus sign on the way forward is a minus sign on the way back.",
    "divide scales": "A numerator gets the gradient divided by the same denominator.",
    "divide chains": "A denominator gets the gradient times -(x / y) / y, the derivative of x / y by y.",
    "remainder distributes": "Between its jumps x % y moves as x does, so x gets the gradient as it is.",
    "remainder chains": "Between its jumps x % y moves by -floor(x / y) with y.",
    "power chains": "The power rule: x ** n has the derivative n * x ** (n - 1) by x, and x ** n * log(x) by n.",
    "branch routes": "Only the branch that is taken gets the gradient.",
}
FORWARD = {  # what the operator of a statement does
    "=": "{target} is set",
    "+=": "{target} is a sum{over}",
    "-=": "{target} is a sum{over}, each term with a minus sign",
    "*=": "{target} is a product{over}",
    "max=": "{target} is the largest value{over}",
    "min=": "{target} is the smallest value{over}",
    "argmax=": "{target} is the place of the largest value{over}: a whole number, which has no derivative",
    "argmin=": "{target} is the place of the smallest value{over}: a whole number, which has no derivative",
}


def of_statement(statement: ir.Statement) -> str:
    """What a statement computes."""
    named = ir.index_names(statement.target)
    over = [index for index in statement.indices if index not in named]
    each = f" for each {', '.join(i for i in statement.indices if i in named)}" if named else ""
    told = FORWARD[statement.operator].format(
        target=show_access(statement.target), over=f" over {', '.join(over)}" if over else ""
    )
    return f"{told}{each}{'' if statement.guard is None else ', where the condition holds'}."


def of_flow(flow: Flow, backwards: bool) -> tuple[str, ...]:
    """Why an adjoint statement is what it is, from the output back to the input."""
    return tuple(_sentences(flow, backwards))


def _sentences(flow: Flow, backwards: bool) -> Iterator[str]:
    note, read = flow.note, show_access(flow.access)
    for pattern in flow.patterns:
        if pattern.startswith("copy adds "):
            yield from _copies(pattern.removeprefix("copy adds "), read, flow.access.tensor)
        else:
            yield _gate(pattern, note.forward, read)
    if "solved for a gather" in note.rule:
        yield (
            f"{read} is read at a computed place, so the plain swap would add into computed places, "
            f"`{show_statement(note.raw)}`. Solved for the place, the loop runs over the elements and collects: "
            "no two points write the same one, so that they can run at the same time."
        )
    if "scatter-add" in note.rule:
        yield f"{read} is read where an array says, so the adjoint adds into the places that the array says."
    if backwards:
        yield "The steps of the block run in reverse: the last one has its gradient first."


def _gate(pattern: str, forward: ir.Statement, read: str) -> str:
    target = show_access(forward.target)
    if pattern in GATES:
        return GATES[pattern]
    if pattern.startswith("add distributes over "):
        over = pattern.removeprefix("add distributes over ")
        return f"{target} adds up over {over}: each term of the sum gets the same gradient."
    name, _, verb = pattern.partition(" ")
    if forward.operator in ("max=", "min=", "*=") and pattern == _of_reduction(forward):
        if forward.operator == "*=":
            return f"{read} gets the gradient of {target} times the product of all other factors."
        best = "largest" if forward.operator == "max=" else "smallest"
        return f"Only the {best} value, the first of equals, moves {target}: it gets the whole gradient."
    if pattern == "multiply swaps":
        return f"The swap rule: {read} and {target} change places, and the other factors stay."
    if verb == "routes":
        return _routing(name)
    return _chaining(name)


def _of_reduction(forward: ir.Statement) -> str:
    return "multiply swaps" if forward.operator == "*=" else f"{forward.operator[:3]} routes"


def _routing(function: str) -> str:
    if function in ("max", "min"):
        return f"{function} passes the gradient to the argument that it takes, the first of equals."
    row = FUNCTIONS.get(function)
    slope = f": its derivative is {row.slopes[0]}" if row else ""
    return f"{function} passes the gradient on where it passes its argument on{slope}."


def _chaining(function: str) -> str:
    row = FUNCTIONS.get(function)
    if row is None:
        return f"The chain rule: the gradient times the derivative of {function}, as it was defined."
    call = f"{function}({', '.join(row.arguments)})"
    slopes = [
        f"{slope} by {name}" if len(row.arguments) > 1 else slope
        for name, slope in zip(row.arguments, row.slopes, strict=True)
    ]
    value = ", where y is its value" if any(re.search(r"\by\b", slope) for slope in row.slopes) else ""
    return f"The chain rule: the gradient times the derivative of {call}, which is {', '.join(slopes)}{value}."


def _copies(told: str, read: str, tensor: str) -> Iterator[str]:
    for part in told.split(" and "):
        if part.startswith("over "):
            over = part.removeprefix("over ")
            yield f"{read} is used once for every {over}, so what comes back is added up over {over}."
        elif part.endswith(" uses"):
            yield f"{tensor} is read at {part.removesuffix(' uses')} places; each adds its part to the gradient."
        else:
            yield "Several points may read the same element: what they send back is added up."
