"""Analysis: a text -> what the page shows while it is typed, as JSON: faults, or explanation, derivatives and graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import Fault, SwapError
from ..explain.explanation import Explanation, explanation
from ..language import ir
from ..language.name_kinds import flat_items
from ..language.parse import parse
from ..pictures.drawn import dataflow_svg
from ..program import Program, program
from ..rules.activity import active, default_wrt, integer_uses
from ..trust.inputs import Draw, free_sizes

DRAW = Draw(sizes=(8,))  # where sliders start


def analyse(text: str, derivative: str = "adjoint") -> dict[str, Any]:
    """`derivative` is the one that is asked for beside the adjoint: tangent, second, or none."""
    try:
        made = program(text)
        told = explanation(made.loops, source=text)
    except SwapError as error:
        return {"faults": faults(error, text)}
    shown = told.as_json()
    places = _places(told, text)
    for statement in shown["statements"]:
        statement["where"] = places[statement["number"] - 1]
    for line, found in zip(shown["backward"], _backward(told), strict=True):
        line |= found
    return {
        "faults": [],
        "explanation": shown,
        "graph": _told(lambda: dataflow_svg(made.loops, told.wrt), text),
        "sliders": _told(lambda: free_sizes(made.loops, DRAW), text),
        "derivative": _told(lambda: _derivative(made, told, derivative), text),
    }


def _told(make: Callable[[], Any], text: str) -> dict[str, Any]:
    """What was made, or why it was not."""
    try:
        return {"value": make(), "faults": []}
    except SwapError as error:
        return {"value": None, "faults": faults(error, text)}


def faults(error: SwapError, text: str) -> list[dict[str, Any]]:
    """What is wrong, with its place as an editor counts: in units of UTF-16."""
    return [_fault(fault, text) for fault in error.faults]


def _fault(fault: Fault, text: str) -> dict[str, Any]:
    span = fault.span
    known = span is not None and span.text.removesuffix("\n") == text.removesuffix("\n")
    return {
        "message": fault.message,
        "hint": fault.hint.replace("--size ", ""),  # an option of the command: here it is a slider
        "start": units(text, span.start) if span and known else None,
        "end": units(text, span.end) if span and known else None,
        "shown": str(fault).replace("--size ", ""),
    }


def units(text: str, offset: int) -> int:
    """An offset in characters as one in units of UTF-16, within the text."""
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2


def _places(told: Explanation, text: str) -> list[dict[str, int] | None]:
    """Where each statement stands; those that a call was replaced by stand where the call does."""
    found = [None if s.where is None else (s.where.start, s.where.end) for s in told.statements]
    if None in found:
        calls = iter(_calls(text))
        open_call: ir.CallStatement | None = None
        missing: set[str] = set()
        for k, statement in enumerate(told.statements):
            if found[k] is not None:
                open_call = None
                continue
            if open_call is None or not missing:
                open_call = next(calls, None)
                missing = set() if open_call is None else {access.tensor for access in open_call.targets}
            missing.discard(statement.target)
            if open_call is not None and open_call.span is not None:
                found[k] = open_call.span.start, open_call.span.end
    return [None if p is None else {"start": units(text, p[0]), "end": units(text, p[1])} for p in found]


def _calls(text: str) -> list[ir.CallStatement]:
    main = parse(text).main
    return [] if main is None else [item for item in flat_items(main.body) if isinstance(item, ir.CallStatement)]


def _backward(told: Explanation) -> Iterator[dict[str, Any]]:
    """For each line of the adjoint the numbers of the adjoint statements, and of the statements, that it goes with."""
    same = {statement.text: statement.number for statement in told.statements}
    for line in told.backward:
        text = line.text.strip()
        target = target_of(text)
        adjoints = [line.adjoint] if line.adjoint else [a.number for a in told.adjoints if a.target == target]
        forward = [told.adjoints[number - 1].forward for number in adjoints]
        yield {"adjoints": adjoints, "statements": [same[text]] if text in same else forward}


def target_of(line: str) -> str:
    """The tensor that a line writes: its first word."""
    return line.partition("[")[0].partition(" ")[0]


def _derivative(made: Program, told: Explanation, kind: str) -> list[dict[str, Any]]:
    """The lines of a derivative, each with the statements that its target goes with."""
    if kind not in ("tangent", "second") or not told.wrt:
        return []
    derived = made.tangent(wrt=told.wrt) if kind == "tangent" else second_order(made)
    return [{"text": line, "statements": _behind(line, told)} for line in str(derived).splitlines()]


def _behind(line: str, told: Explanation) -> list[int]:
    name = target_of(line.strip())
    written = [s.number for s in told.statements if name == s.target or name.startswith(f"{s.target}.")]
    derived = [a.forward for a in told.adjoints if name == a.target or name.startswith(f"{a.target}.")]
    return sorted({*(derived or written)})


def second_order(made: Program) -> Program:
    """A Hessian-vector product where the output is one scalar; else the tangent of the adjoint."""
    of, wrt = smooth_outputs(made.loops), default_wrt(made.loops)
    if len(of) == 1 and made.loops.ranks[of[0]] == 0:
        return made.hessian_vector(of=of[0], wrt=wrt)
    return made.adjoint(wrt=wrt, of=of).tangent(wrt=wrt)


def smooth_outputs(loops: ir.Loops) -> list[str]:
    """The outputs that have a derivative by an input."""
    integers, wrt = integer_uses(loops), default_wrt(loops)
    return [name for name in loops.outputs if name not in integers and active(loops, wrt, [name])]
