"""flat: a scalar program -> the text of a Python function that gives its value and its gradient."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...language import ir
from ...language.build import negate
from ...language.formula import calls
from ...language.functions import DEFINED, FUNCTIONS
from ...language.ir import Expr
from ...language.render import expression as show
from ...program import Program
from ...rules.activity import active, check_wrt, default_wrt
from ...rules.differentiate import contributions
from ...run.arguments import defaults
from .gates import Gate, gates

BUILT_IN = frozenset(row.name for row in FUNCTIONS.values() if row.in_python == "builtins")
MATH = frozenset({"inf", *(row.name for row in FUNCTIONS.values() if row.in_python == "math")})
HELPERS = {row.name: row.value for row in FUNCTIONS.values() if row.value}


def flat(program: Program, of: str | None = None, wrt: Sequence[str] | None = None) -> str:
    """Straight-line Python: one operation a line, forward, then its adjoints from the last line to the first.

    The function is named after the output and returns its value, and the gradient by the name of each input. It
    computes in Python's own arithmetic, which raises where the language gives an infinity or NaN.
    """
    loops = program.loops
    forward = gates(loops, of)
    output = forward[-1].name
    inputs = default_wrt(loops, [output]) if wrt is None else check_wrt(loops, wrt)
    writer = _Writer(loops, forward, output, inputs)
    body = [*writer.forward(), *writer.backward(), writer.returned()]
    head = f"def {writer.identifier(output)}({', '.join(writer.parameters())}):"
    return "\n".join([*_prelude(writer.called), head, *(f"    {line}" for line in body)]) + "\n"


@dataclass
class _Writer:
    loops: ir.Loops
    gates: list[Gate]
    output: str
    inputs: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [*self.loops.inputs, *(gate.name for gate in self.gates)]
        self.names: dict[str, str] = {}
        self.called: set[str] = set()
        for name in names:
            self._name(name, name)
        self.active = active(self.as_loops(), self.inputs, [self.output])
        for name in names:
            self._name(f"{name}.grad", f"grad_{self.names[name]}")

    def _name(self, name: str, wish: str) -> None:
        """A Python identifier that nothing else has."""
        wish = wish.replace(".", "_")
        wish = f"{wish}_" if keyword.iskeyword(wish) or wish in BUILT_IN else wish
        self.names[name] = ir.fresh(wish, {*self.names.values()})

    def as_loops(self) -> ir.Loops:
        """The gates as statements: what depends on what is told by the rules of the language."""
        return ir.Loops(tuple(ir.Statement(ir.Access(g.name), "=", g.value) for g in self.gates))

    def identifier(self, name: str) -> str:
        return self.names[name]

    def text(self, node: Expr) -> str:
        def rename(part: Expr) -> Expr:
            return ir.Access(self.names[part.tensor]) if isinstance(part, ir.Access) else part

        for part in ir.walk(node):
            if isinstance(part, ir.Call):
                self.called.add(part.function)
            elif isinstance(part, ir.Number) and abs(part.value) == math.inf:
                self.called.add("inf")
        return show(ir.transform(node, rename))

    def parameters(self) -> list[str]:
        standing = defaults(self.loops)
        return [
            f"{self.names[name]}={standing[name]!r}" if name in standing else self.names[name]
            for name in self.loops.inputs
        ]

    def forward(self) -> list[str]:
        return [f"{self.names[g.name]} = {self._guarded(g, self.text(g.value))}" for g in self.gates]

    def _guarded(self, gate: Gate, text: str) -> str:
        if gate.condition is None:
            return text
        whole = f"({text})" if isinstance(gate.value, ir.Conditional) else text
        return f"{whole} if {self.names[gate.condition]} else 0.0"

    def backward(self) -> list[str]:
        """One line for each operand of each gate, the last gate first: the first use assigns, the others add."""
        lines = [f"{self.names[f'{self.output}.grad']} = 1.0"]
        begun = set()
        for gate in reversed(self.gates):
            if gate.name not in self.active:
                continue
            for found in contributions(gate.value, self.active):
                swapped = replace(found, before=(), after=(*found.before, *found.after))
                value = swapped.value(ir.Access(f"{gate.name}.grad"), partial(self._held, gate))
                text = self.text(negate(value) if found.negative else value)
                conditions = [*found.conditions, *([ir.Access(gate.condition)] if gate.condition else [])]
                if conditions:
                    text += f" if {' and '.join(self._condition(c) for c in conditions)} else 0.0"
                operand = found.access.tensor
                lines.append(f"{self.names[f'{operand}.grad']} {'+=' if operand in begun else '='} {text}")
                begun.add(operand)
        return lines + [f"{self.names[f'{x}.grad']} = 0.0" for x in self.inputs if x not in begun]

    @staticmethod
    def _held(gate: Gate, value: Expr) -> Expr:
        """The gate's own value is read where the derivative has it: it was computed on the way forward."""
        return ir.exchange(value, gate.value, ir.Access(gate.name))

    def _condition(self, node: Expr) -> str:
        text = self.text(node)
        return f"({text})" if isinstance(node, ir.Logic) and node.operator == "or" else text

    def returned(self) -> str:
        gradients = ", ".join(f'"{x}": {self.names[f"{x}.grad"]}' for x in self.inputs)
        return f"return {self.names[self.output]}, {{{gradients}}}"


def _prelude(called: set[str]) -> list[str]:
    """Imports and definitions of the functions that the lines call."""
    own = {name: DEFINED[name] for name in sorted(called) if name in DEFINED}
    for function in own.values():
        called = called | {n.function for n in ir.walk(function.value) if isinstance(n, ir.Call)}
    for _ in range(2):  # a helper may call another
        called = called.union(*(calls(HELPERS[name]) for name in called if name in HELPERS))
    imported = sorted(called & MATH)
    parts: list[tuple[str, ...]] = [(f"from math import {', '.join(imported)}",)] if imported else []
    parts += [(f"def {name}(x):", f"    return {text}") for name, text in HELPERS.items() if name in called]
    parts += [
        (f"def {name}({', '.join(function.arguments)}):", f"    return {show(function.value)}")
        for name, function in own.items()
    ]
    return [line for part in parts for line in (*part, "", "")]
