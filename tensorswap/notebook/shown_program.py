"""A program -> its text in colours, and folded below it the derivative with its reasons, and the dataflow."""

from __future__ import annotations

from ..errors import SwapError
from ..explain.explanation import explanation
from ..explain.page import body
from ..pictures.drawn import dataflow_svg
from ..program import Program
from .markup import block, folded, head, part

STATEMENTS = 60  # of a longer program only the text is shown: it is shown at each look, and must be quick
LINES = 200


def program_page(program: Program) -> str:
    title = head("Program", f"{', '.join(program.inputs)} → {', '.join(program.outputs)}")
    lines = str(program).splitlines()
    text = block("\n".join(lines[:LINES]))
    if len(lines) > LINES:
        text += head("", f"{len(lines) - LINES} more lines: print(program)")
    if len(program.loops.statements) > STATEMENTS:
        return part(title, text)
    return part(title, text, *_derivative(program), *_picture(program))


def _derivative(program: Program) -> list[str]:
    try:
        made = explanation(program.loops)
    except SwapError:  # of a second derivative, say, whose names no text may hold
        return []
    return [folded("Derivative, with the rule behind each statement", *body(made))]


def _picture(program: Program) -> list[str]:
    try:
        return [folded("Dataflow: values down in green, gradients up in red", dataflow_svg(program.loops))]
    except SwapError:  # too many tensors for a picture
        return []
