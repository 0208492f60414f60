"""Symbolic differentiation: the rules of calculus on a whole expression, written out, and with equal parts shared.

Expressions are kept as a graph of numbered nodes, equal ones once. Written out, a node counts as often as it stands in
the text; shared, once. So the size of a text too long to write is still a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import LimitError
from ...language import ir
from ...language.ir import Expr
from ...language.parse import parse_expression
from ...language.render import expression as show
from ...program import Program, program
from ...rules.activity import check_wrt
from ...rules.differentiate import tangent
from ..flat.gates import joined, scalar_output

PART = ir.Access("part")
WRITTEN_OUT = 10_000  # operations of a text that is shown


@dataclass
class Graph:
    """Nodes by number: each is an operation on `PART`s, with the numbers of the nodes that these are."""

    nodes: list[tuple[Expr, tuple[int, ...]]] = field(default_factory=list)
    numbers: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)

    def add(self, what: Expr, parts: tuple[int, ...] = ()) -> int:
        key = (repr(what), parts)  # tells 1 from 1.0
        if key not in self.numbers:
            self.numbers[key] = len(self.nodes)
            self.nodes.append((what, parts))
        return self.numbers[key]

    def intern(self, node: Expr, names: dict[str, int]) -> int:
        """The number of an expression; `names` are the numbers of values that it reads."""
        if isinstance(node, ir.Access) and node.tensor in names:
            return names[node.tensor]
        parts = tuple(self.intern(part, names) for part in ir.children(node))
        if isinstance(node, ir.Binary):
            return self.arithmetic(node.operator, *parts)
        if isinstance(node, ir.Unary) and node.operator == "-" and (value := self.number(parts[0])) is not None:
            return self.add(ir.Number(-value))
        return self.add(ir.rebuild(node, (PART,) * len(parts)), parts)

    def arithmetic(self, operator: str, left: int, right: int) -> int:
        """An operation on two nodes; zeros and ones vanish as they would on paper."""
        above, below = self.number(left), self.number(right)
        if operator in ("*", "/") and below == 1:
            return left
        if operator == "*" and above == 1:
            return right
        if operator in ("+", "-") and below == 0:
            return left
        if operator == "+" and above == 0:
            return right
        if (operator == "*" and 0 in (above, below)) or (operator == "/" and above == 0):
            return self.add(ir.Number(0))
        return self.add(ir.Binary(operator, PART, PART), (left, right))

    def number(self, node: int) -> int | float | None:
        what = self.nodes[node][0]
        return what.value if isinstance(what, ir.Number) else None

    def expression(self, number: int) -> Expr:
        """The node as an expression, everything written out."""
        what, parts = self.nodes[number]
        return ir.rebuild(what, tuple(self.expression(part) for part in parts))

    def below(self, number: int) -> list[int]:
        """The node and all that it needs, children first."""
        seen: dict[int, None] = {}
        stack = [(number, False)]
        while stack:
            node, done = stack.pop()
            if done:
                seen[node] = None
            elif node not in seen:
                stack.append((node, True))
                stack += [(part, False) for part in reversed(self.nodes[node][1])]
        return list(seen)

    def operations(self, numbers: Sequence[int]) -> int:
        """How many operations give all of these nodes."""
        return sum(_is_operation(self.nodes[n][0]) for n in {n for number in numbers for n in self.below(number)})


def _is_operation(what: Expr) -> bool:
    return not isinstance(what, ir.Number | ir.Access)


@dataclass(frozen=True)
class Symbolic:
    """The derivative of an expression by one of its names."""

    graph: Graph
    value: int
    derivative: int
    by: str

    @property
    def operations(self) -> int:
        """Operations of the derivative as a plain formula: a part that stands twice is computed twice."""
        return self._written_out(self.derivative)

    @property
    def shared_operations(self) -> int:
        """Operations with common subexpressions computed once."""
        return self.graph.operations([self.derivative])

    @property
    def forward_operations(self) -> int:
        """Operations of the expression itself, common subexpressions computed once."""
        return self.graph.operations([self.value])

    def _written_out(self, number: int) -> int:
        count: dict[int, int] = {}
        for node in self.graph.below(number):
            what, parts = self.graph.nodes[node]
            count[node] = _is_operation(what) + sum(count[part] for part in parts)
        return count[number]

    def __str__(self) -> str:
        """The derivative written out."""
        if self.operations > WRITTEN_OUT:
            raise LimitError(
                f"the derivative has {self.operations:,} operations; at most {WRITTEN_OUT:,} are written out",
                hint="use shared(), which computes equal parts once",
            )
        return show(self.graph.expression(self.derivative))

    def shared(self) -> Program:
        """The derivative as a program with a statement for every part that is used more than once."""
        order = self.graph.below(self.derivative)
        uses: dict[int, int] = {}
        for node in order:
            for part in self.graph.nodes[node][1]:
                uses[part] = uses.get(part, 0) + 1
        taken = {what.tensor for what, _ in self.graph.nodes if isinstance(what, ir.Access)}
        result = ir.fresh("derivative", taken)
        made: dict[int, Expr] = {}
        lines = []
        for node in order:
            what, parts = self.graph.nodes[node]
            value = ir.rebuild(what, tuple(made[part] for part in parts))
            if node == self.derivative:
                lines.append(f"{result} = {show(value)}")
            elif _is_operation(what) and uses[node] > 1:
                name = ir.claim(f"t{len(lines)}", taken)
                lines.append(f"{name} = {show(value)}")
                value = ir.Access(name)
            made[node] = value
        return program("\n".join(lines), outputs=[result])


def symbolic(function: Program | str, by: str, of: str | None = None) -> Symbolic:
    """The derivative of a scalar program, or of an expression given as text, by one name."""
    return symbolic_gradient(function, [by], of)[0]


def symbolic_gradient(function: Program | str, by: Sequence[str], of: str | None = None) -> list[Symbolic]:
    """The derivative by each name; parts that several of them have are one part of their graph."""
    if isinstance(function, str):
        names_in_use = {n.tensor for n in ir.walk(parse_expression(function)) if isinstance(n, ir.Access)}
        function = program(f"{ir.fresh('value', names_in_use)} = {function}")
    by = check_wrt(function.loops, by)
    graph, names = Graph(), dict[str, int]()
    for name in function.inputs:
        names[name] = graph.add(ir.Access(name))
    output = scalar_output(function.loops, of)
    for statement in function.loops.statements:
        name = statement.target.tensor
        names[name] = graph.intern(joined(statement, ir.Access(name) if name in names else None), names)
    last = names[output]
    one = graph.add(ir.Number(1))
    return [Symbolic(graph, last, _derivative(graph, last, {names[name]: one}), name) for name in by]


def _derivative(graph: Graph, number: int, known: dict[int, int | None]) -> int:
    """The number of a node's derivative; each node is differentiated once, however often it stands in the text."""
    for node in graph.below(number):
        if node in known:
            continue
        what, parts = graph.nodes[node]
        moving = [k for k, part in enumerate(parts) if known[part] is not None]
        if not moving:
            known[node] = None
            continue
        operands: dict[str, int] = {f"x{k}": part for k, part in enumerate(parts)}
        for k in moving:
            operands[f"x{k}.dot"] = known[parts[k]]  # type: ignore[assignment]  # a moving part has a derivative
        local = ir.rebuild(what, tuple(ir.Access(f"x{k}") for k in range(len(parts))))
        rule = tangent(_with_numbers(graph, local, parts), {f"x{k}": f"x{k}.dot" for k in moving})
        known[node] = None if rule is None else graph.intern(rule, operands)
    found = known[number]
    return graph.add(ir.Number(0)) if found is None else found


def _with_numbers(graph: Graph, local: Expr, parts: tuple[int, ...]) -> Expr:
    """A rule may ask whether an operand is a number: x ** 2 is no general power."""
    values = {f"x{k}": value for k, part in enumerate(parts) if (value := graph.number(part)) is not None}

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and node.tensor in values:
            return ir.Number(values[node.tensor])
        return node

    return ir.transform(local, change)
