"""Gates: a scalar program -> a list of single operations in the order of their evaluation, each under a name.

A branch that is not taken is not evaluated, so a gate inside a branch has a condition: the name of a truth value that
an earlier gate holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from ...errors import ProgramError
from ...language import ir
from ...language.build import ONE, ZERO, conjunction
from ...language.functions import RANDOM
from ...language.ir import Expr
from ...language.render import access as show_access
from ...rules.activity import check_of, refuse_updates

START: dict[str, Expr] = {
    "=": ZERO, "+=": ZERO, "-=": ZERO, "*=": ONE, "max=": ir.Number(float("-inf")), "min=": ir.Number(float("inf")),
}  # fmt: skip


@dataclass(frozen=True)
class Gate:
    """One operation on numbers and named values. Where `condition` is false it is not evaluated, and counts as 0."""

    name: str
    value: Expr
    condition: str | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        """The values that it reads, in the order of the text, each as often as it stands there."""
        return tuple(n.tensor for n in ir.walk(self.value) if isinstance(n, ir.Access))


def gates(loops: ir.Loops, of: str | None = None) -> list[Gate]:
    """The operations that one output needs."""
    output = scalar_output(loops, of)
    made = _Gates({*loops.names})
    last = {s.target.tensor: k for k, s in enumerate(loops.statements)}
    for position, statement in enumerate(loops.statements):
        made.statement(statement, last[statement.target.tensor] == position)
    return needed(made.gates, output)


def scalar_output(loops: ir.Loops, of: str | None) -> str:
    """The one output of a program of single numbers."""
    check_scalar(loops)
    wanted = check_of(loops, None if of is None else [of])
    if len(wanted) > 1:
        raise ProgramError(
            f"the program has the outputs {', '.join(wanted)}; flat code is for one", hint=f'write of="{wanted[0]}"'
        )
    refuse_updates(loops, loops.updated)
    return wanted[0]


def needed(found: Sequence[Gate], output: str) -> list[Gate]:
    """The gates that a value depends on."""
    wanted, kept = {output}, []
    for gate in reversed(found):
        if gate.name in wanted:
            kept.append(gate)
            wanted |= {*gate.operands, *([gate.condition] if gate.condition else [])}
    return kept[::-1]


def check_scalar(loops: ir.Loops) -> None:
    """Refuses what is more than a list of operations on single numbers."""
    tensor = next((a for a in loops.accesses if a.indices), None)
    if tensor is not None:
        raise ProgramError(
            f"{show_access(tensor)} has indices; flat code is for programs of single numbers",
            tensor.span,
            "write scalars without brackets, or use p.grad, which keeps the loops",
        )
    if loops.indices or loops.static_names:
        name = (*loops.indices, *loops.static_names)[0]
        raise ProgramError(
            f"{name} is {'an index' if name in loops.indices else 'a static integer'}; flat code is for programs of "
            "single numbers",
            hint="use p.grad, which keeps the loops",
        )
    for statement in loops.statements:
        random = next((n for n in statement.nodes if isinstance(n, ir.Call) and n.function in RANDOM), None)
        if random is not None or statement.operator.startswith("arg"):
            what = random.function if random is not None else statement.operator
            raise ProgramError(
                f"`{what}` has no flat form", (random or statement).span, "flat code is for arithmetic on numbers"
            )


def joined(statement: ir.Statement, before: Expr | None) -> Expr:
    """The value of a target behind a statement; `before` is what earlier statements made of it, None at the first."""
    operator, value = statement.operator, statement.value
    if statement.guard is not None:
        value = ir.Conditional(statement.guard, value, START[operator])
    if before is None:
        return ir.Unary("-", value) if operator == "-=" else value
    if operator in ("max=", "min="):
        return ir.Call(operator[:-1], (before, value))
    return ir.Binary(operator[:-1], before, value)


@dataclass
class _Gates:
    taken: set[str]
    gates: list[Gate] = field(default_factory=list)
    current: dict[str, Expr] = field(default_factory=dict)  # a target that several statements fill: its value so far
    numbers: Iterator[int] = field(default_factory=count)

    def fresh(self, letter: str = "s") -> str:
        return next(name for number in self.numbers if (name := f"{letter}{number}") not in self.taken)

    def statement(self, statement: ir.Statement, last: bool) -> None:
        """`last` is the statement that completes its target, which then has its name."""
        name = statement.target.tensor
        self.current[name] = self.split(joined(statement, self.current.get(name)), None, name if last else None)

    def split(self, node: Expr, condition: str | None, name: str | None = None) -> Expr:
        """Adds the gates of an expression; gives the value that holds it. Only what is asked for by name is copied."""
        match node:
            case ir.Number() | ir.Access() if name is None:
                return node
            case ir.Conditional(condition=asked, then=then, otherwise=otherwise):
                holds = self.truth(asked, condition)
                fails = holds
                if not isinstance(otherwise, ir.Number | ir.Access):
                    fails = self.truth(ir.Unary("not", ir.Access(holds)), condition)
                node = ir.Conditional(ir.Access(holds), self.split(then, holds), self.split(otherwise, fails))
            case ir.Call(function="max" | "min" as function, arguments=(first, second, third, *rest)):
                pair = ir.Call(function, (first, second))
                return self.split(ir.Call(function, (pair, third, *rest)), condition, name)
            case ir.Compare() | ir.Logic() | ir.Unary(operator="not"):
                pass  # a truth value has no derivative: it stays one expression
            case _:
                parts = tuple(self.split(part, condition) for part in ir.children(node))
                node = ir.rebuild(node, parts) if parts else node
        return self.add(Gate(name or self.fresh(), replace(node, span=None), condition))

    def truth(self, node: Expr, condition: str | None) -> str:
        """A truth value that is false wherever the condition around it is."""
        around = None if condition is None else ir.Access(condition)
        whole = conjunction((around, node))
        assert whole is not None
        return self.add(Gate(self.fresh("c"), whole)).tensor

    def add(self, gate: Gate) -> ir.Access:
        self.taken.add(gate.name)
        self.gates.append(gate)
        return ir.Access(gate.name)
