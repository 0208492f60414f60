"""A program with a header -> the same program without one, for a choice of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from .. import library
from ..language import ir
from ..program import Program
from ..rules.inline import inline


def plain(model: Program, given: Set[str], sizes: Mapping[str, int]) -> Program:
    """The model as bare statements: `given` are the tensors and scalars that a call will pass, `sizes` its static
    integers. What has a default and is not given is that number."""
    loops, header = model.loops, model.loops.header
    if header is None:
        statics = tuple(replace(d, default=sizes.get(d.name, d.default)) for d in loops.statics)
        return Program(replace(loops, statics=statics))
    passed: list[tuple[str, ir.Expr]] = []
    for argument in header.arguments:
        if isinstance(argument, ir.StaticDeclaration):
            if argument.name in sizes:
                passed.append((argument.name, ir.Number(sizes[argument.name])))
        elif argument.name in given or argument.default is None:
            passed.append((argument.name, ir.Access(argument.name)))
    call = ir.CallStatement(tuple(ir.Access(name) for name in model.outputs), header.name, (), tuple(passed))
    made = inline(ir.Loops((call,)), {header.name: loops}, library.definitions)
    return Program(made if made.outputs == model.outputs else replace(made, returns=model.outputs))
