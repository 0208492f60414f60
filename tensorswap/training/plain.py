"""A program with a header -> the same program without one, for a choice of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Set

from ..language import ir
from ..language.render import program as render
from ..program import Program, program


def plain(model: Program, given: Set[str], sizes: Mapping[str, int]) -> Program:
    """The model as bare statements: `given` are the tensors and scalars that a call will pass, `sizes` its static
    integers. What has a default and is not given is that number."""
    header = model.loops.header
    if header is None:
        lines = [line for line in str(model).splitlines() if _static(line) not in sizes]
        statics = [f"{name}: int = {sizes[name]}" for name in model.loops.static_names if name in sizes]
        return program("\n".join([*statics, *lines]), None if model.loops.returns is None else model.outputs)
    passed = []
    for argument in header.arguments:
        if isinstance(argument, ir.StaticDeclaration):
            if argument.name in sizes:
                passed.append(f"{argument.name}={sizes[argument.name]}")
        elif argument.name in given or argument.default is None:
            passed.append(f"{argument.name}={argument.name}")
    name = header.name.replace(".", "_")
    text = render(model.loops).replace(f"def {header.name}(", f"def {name}(", 1)
    call = f"{', '.join(model.outputs)} = {name}({', '.join(passed)})"
    return program(f"{text}\n{call}", model.outputs)


def _static(line: str) -> str:
    """The name in a line such as `stride: int = 1`."""
    name, colon, rest = line.partition(":")
    return name if colon and rest.startswith(" int") else ""
