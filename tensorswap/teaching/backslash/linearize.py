"""backslash: a program and the values of its inputs -> the triangular system of its derivative at that point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from ...arrays import Array
from ...errors import ArgumentError, DerivativeError
from ...language import ir
from ...language.hints import closest
from ...language.ir import Expr, Number
from ...language.sizes import Sizes
from ...program import Program
from ...rules.activity import active, depends_smoothly, integer_uses, refuse_updates
from ...rules.differentiate import contributions
from ...run.arguments import bind
from .equations import Entries
from .operators import Operator, Restricted, add
from .pair import Pair
from .recognise import Recogniser
from .spaces import Plain, Space
from .system import System


def backslash(
    program: Program,
    at: Mapping[str, Any],
    nodes: Sequence[str] | None = None,
    spaces: Mapping[str, Space] | None = None,
) -> System:
    """The system dx = L dx + D dp of a program at a point: its tensors are dx, its floating-point inputs dp.

    `nodes` names the tensors to keep, all if None; what the others pass on becomes compositions of operators. `spaces`
    says of inputs and tensors that they are not plain arrays: their values go in, and come out, as elements.
    """
    if not isinstance(program, Program):
        raise ArgumentError(
            f"backslash takes a program, not {type(program).__name__}", hint="backslash(ts.program(text), at={...})"
        )
    given = dict(spaces or {})
    plain = {name: given[name].embed(given[name].checked(name, v)) if name in given else v for name, v in at.items()}
    point = _Point.of(program, plain)
    unknown = next((name for name in given if name not in point.values), None)
    if unknown is not None:
        hint = closest(unknown, list(point.values), "its tensors are")
        raise ArgumentError(f"the program has no tensor {unknown}", hint=hint)
    for name, space in given.items():
        if not space.holds(point.values[name]):
            raise ArgumentError(f"the value of {name} lies outside of {space}", hint=f"leave {name} a plain array")
    system = point.system(given)
    return system if nodes is None else system.keep(list(nodes))


@dataclass(frozen=True)
class _Unit:
    """Statements that complete their tensors together: all of a tensor's, and a block as a whole."""

    items: tuple[ir.Item, ...]

    @property
    def statements(self) -> tuple[ir.Statement, ...]:
        return ir.Loops(self.items).statements

    @property
    def written(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.target.tensor for s in self.statements))

    @property
    def is_sum(self) -> bool:
        """One tensor, of statements that add up: each has operators of its own."""
        plain = not any(isinstance(item, ir.Block) for item in self.items) and len(self.written) == 1
        return plain and all(s.operator in ("=", "+=", "-=") for s in self.statements)


@dataclass(frozen=True)
class _Point:
    """A program whose sizes are numbers, and the values of all of its tensors."""

    loops: ir.Loops
    sizes: Sizes
    values: dict[str, Array]

    @staticmethod
    def of(program: Program, arguments: Mapping[str, Any]) -> _Point:
        chosen = program._for_call(arguments).loops
        whole = {*chosen.indices, *chosen.static_names, *integer_uses(chosen)}
        numbers = {n: float(v) if type(v) is int and n not in whole else v for n, v in arguments.items()}
        bound = bind(chosen, numbers)
        loops = _closed(bound.loops, bound.sizes)
        refuse_updates(loops, frozenset(loops.names))
        everything = Program(ir.Loops(loops.body, _sizes(loops, bound.sizes), returns=loops.written))
        result = everything({name: bound.arrays[name] for name in everything.inputs})
        computed = result if isinstance(result, dict) else {loops.written[0]: result}
        return _Point(loops, bound.sizes, {**bound.arrays, **computed})

    def system(self, given: Mapping[str, Space]) -> System:
        integers = integer_uses(self.loops)
        floating = [n for n in self.loops.inputs if self.values[n].dtype.kind == "f" and n not in integers]
        moved = depends_smoothly(self.loops, floating) if floating else frozenset()
        nodes = [n for n in self.loops.written if n in moved and n not in integers]
        if not nodes:
            raise DerivativeError("no tensor of the program depends on a floating-point input")
        used = active(self.loops, floating, nodes)
        spaces = {name: given.get(name, Plain(self.values[name].shape)) for name in (*nodes, *floating)}
        L: Entries = {}
        D: Entries = {}
        units = _units(self.loops.body)
        for unit in units:
            for (y, z), operator in self.entries(unit, frozenset((*nodes, *floating))):
                if z in spaces:
                    fitted = self.fitted(operator, spaces[z], spaces[y])
                    (D if z in floating else L)[y, z] = fitted
        order = [name for unit in units for name in unit.written if name in nodes]
        parameters = {name: spaces[name] for name in floating if name in used}
        return System({name: spaces[name] for name in order}, parameters, L, D)

    @staticmethod
    def fitted(operator: Operator, domain: Space, range: Space) -> Operator:
        same = operator.domain == domain and operator.range == range
        return operator if same else Restricted(operator, domain, range)

    def entries(self, unit: _Unit, smooth: frozenset[str]) -> Iterator[tuple[tuple[str, str], Operator]]:
        """The operators of a unit's tensors by every tensor that it reads."""
        if unit.is_sum:
            yield from self.sums(unit, smooth)
            return
        read = dict.fromkeys(a.tensor for s in unit.statements for a in s.reads)
        outside = [name for name in read if name in smooth and name not in unit.written]
        loops = ir.Loops(unit.items)
        for z in outside:
            reached = depends_smoothly(loops, [z])
            for y in unit.written:
                if y in reached and y in smooth:
                    yield (y, z), Pair(self.part(unit.items, y), y, z, self.values, self.sizes)

    def sums(self, unit: _Unit, smooth: frozenset[str]) -> Iterator[tuple[tuple[str, str], Operator]]:
        """Each statement by itself: its reads as operators, or its tangent and adjoint where one has no simple form."""
        recogniser = Recogniser(self.values, self.sizes)
        found: dict[tuple[str, str], list[Operator]] = {}
        for statement in unit.statements:
            reads: dict[str, list[Operator | None]] = {}
            for contribution in contributions(statement.value, smooth):
                operator = recogniser.operator(statement, contribution)
                reads.setdefault(contribution.access.tensor, []).append(operator)
            y = statement.target.tensor
            for z, operators in reads.items():
                named = [operator for operator in operators if operator is not None]
                if len(named) < len(operators):
                    named = [Pair(self.part((statement,), y), y, z, self.values, self.sizes)]
                found.setdefault((y, z), []).extend(named)
        for key, parts in found.items():
            yield key, reduce(add, parts)

    def part(self, items: tuple[ir.Item, ...], output: str) -> Program:
        """Some of the statements as a program of their own."""
        loops = ir.Loops(items)
        return Program(ir.Loops(items, _sizes(loops, self.sizes), returns=(output,)))


def _closed(loops: ir.Loops, sizes: Sizes) -> ir.Loops:
    """The program without a header, its static integers as numbers; a read of a part of an axis says that it is one."""

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Static | ir.Size | ir.AxisSize):
            return Number(sizes.value(node))
        if isinstance(node, ir.Access):
            shape = sizes.shapes[node.tensor]
            places = tuple(
                ir.Binary("+", e, Number(0)) if isinstance(e, ir.Index) and sizes.index[e.name] != extent else e
                for e, extent in zip(node.indices, shape, strict=True)
            )
            return ir.Access(node.tensor, places, span=node.span)
        return node

    return ir.Loops(ir.map_items(loops.body, lambda s: ir.map_statement(s, change)))


def _sizes(loops: ir.Loops, sizes: Sizes) -> tuple[ir.SizeDeclaration, ...]:
    """Every size as a number."""
    subjects: list[ir.Size | ir.AxisSize] = [ir.Size(index) for index in loops.indices]
    subjects += [ir.AxisSize(t, axis) for t in loops.written for axis in range(len(sizes.shapes[t]))]
    return tuple(ir.SizeDeclaration(subject, Number(sizes.value(subject))) for subject in subjects)


def _units(body: tuple[ir.Item, ...]) -> list[_Unit]:
    """The items, those that write one tensor together; a unit stands where its last item did."""
    units: list[_Unit] = []
    for item in body:
        own = set(_Unit((item,)).written)
        joined = [unit for unit in units if own & set(unit.written)]
        units = [unit for unit in units if not own & set(unit.written)]
        units.append(_Unit((*(i for unit in joined for i in unit.items), item)))
    return units
