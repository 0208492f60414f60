"""Lanes: which loops over elements can be written in vectors as they stand, and how many numbers each vector has.

A loop fits if each of its steps reads and writes elements of its own, side by side in memory, or adds to sums; if no
step needs what another has made; and if all that it computes has an instruction for vectors. LLVM finds the same out,
and more, but takes most of the time of a compilation for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from llvmlite import binding

from . import ir
from .functions import INSTRUCTIONS, made

FEW = 64  # elements that registers hold, and steps that may be written out
WORTH = 8  # steps of which some at once are worth that their sums are added up at the end
LIGHT = 4  # reads of a step beside which another one counts
JUMP = 8  # numbers between two steps
EDGE = 2  # points at one end of a row
APART = 64  # steps between two accesses to one tensor that never meet within a vector
ORDERS = frozenset({"<", "<=", ">", ">=", "==", "!="})
REAL = frozenset({"+", "-", "*", "/", "neg"})
WHOLE = frozenset({"+", "-", "*", "&", "|", "^", "<<", ">>"})
TRUTHS = frozenset({"and", "or", "both", "either", "not"})
EXTREMES = frozenset({"maximum", "minimum"})
OLD = binding.llvm_version_info[0] < 20  # not all machines had instructions for these


@dataclass(frozen=True)
class Rest:
    """What is left of a place divided by a number, as of a step that has one of a few slices."""

    terms: tuple[tuple[Name, int], ...]
    number: int
    divisor: int


Name = str | int | Rest  # of a variable; or another value, by its identity
Form = tuple[tuple[tuple[Name, int], ...], int]  # names with their factors, and a number

Conditions = tuple[tuple[ir.Value, bool], ...]  # tests, and the answers that they must have


@dataclass
class Loop:
    """What is known of a loop that fits: the type of its elements, variables that each step has for itself, sums that
    go on through all steps, by the operation that makes them, and the names of functions that it calls. Loads that only
    some conditions allow, by their identity, which are the same in all steps; and an access that takes place in any
    case. Whether steps leave `alone` what they read."""

    node: ir.For
    type: ir.Type
    own: set[str] = field(default_factory=set)
    sums: dict[str, str] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    allowed: dict[int, Conditions] = field(default_factory=dict)
    sure: tuple[ir.Memory, ir.Value] | None = None
    alone: bool = False

    @property
    def again(self) -> bool:
        """Whether steps may run twice."""
        return self.alone and not self.sums


def jumps(loop: ir.For) -> bool:
    """Whether each step writes to a line of memory of its own, and computes little: vectors would gain nothing."""
    stores = [n for n in loop.body if isinstance(n, ir.Store)]
    if len(stores) != len(loop.body) or any(isinstance(n, ir.Call) for n in ir.walk(loop.body)):
        return False
    return all(abs(dict(linear(n.offset)[0][0]).get(loop.variable.name, 0)) >= JUMP for n in stores)


def loops_of(body: ir.Body) -> list[ir.For]:
    """The innermost loops, but for those of points at an edge, and those inside others that are written out."""
    found = (n for n in ir.statements(body) if isinstance(n, ir.For) and not n.few and not n.edge)
    inner = [n for n in found if not any(map(_is_long, ir.statements(n.body)))]
    inside = {id(few) for n in inner for few in ir.statements(n.body)}
    return inner + [n for n in ir.statements(body) if _is_alone(n) and id(n) not in inside]


def _is_long(node: ir.Statement) -> bool:
    return isinstance(node, ir.LONG) and not (isinstance(node, ir.For) and node.few)


def _is_alone(node: ir.Statement) -> TypeGuard[ir.For]:
    """Whether it is a loop that is written out, and more than the points at an edge."""
    return isinstance(node, ir.For) and node.few and len(node.rounds or ()) > EDGE


def fitting(body: ir.Body) -> dict[int, Loop]:
    """The innermost loops of a function that fit, by their identity. A name that was chosen stands for a tensor which
    has another one, too."""
    chosen = {n.memory for n in ir.statements(body) if isinstance(n, ir.Choose)}
    loops = [loop for loop in loops_of(body) if not chosen.intersection(ir.walk(loop.body))]
    fit = {id(loop): _fitting(loop, body) for loop in loops}
    found = {node: loop for node, loop in fit.items() if loop is not None}
    if any(_is_short(loop) and _waits(found[id(loop)], loop, body) for loop in loops if id(loop) in found):
        return found
    return {id(loop): found[id(loop)] for loop in loops if id(loop) in found and not _is_short(loop)}


def _is_short(loop: ir.For) -> bool:
    """Whether LLVM would write all of it out, and keep what it shares with the loops around."""
    return loop.rounds is not None and len(loop.rounds) < FEW and ir.is_zero(loop.first)


def linear(value: ir.Value) -> tuple[Form, list[ir.Value]]:
    """A place as a sum of variables, and of values of other kinds, with factors; and those values."""
    terms: dict[Name, int] = {}
    others: list[ir.Value] = []
    number = _add(value, 1, terms, others)
    return (tuple(sorted(((n, k) for n, k in terms.items() if k), key=str)), number), others


def _add(value: ir.Value, factor: int, terms: dict[Name, int], others: list[ir.Value]) -> int:
    """Adds to the terms; gives what is a number."""
    name: Name = id(value)
    match value:
        case ir.Number(value=number):
            return factor * int(number)
        case ir.Variable(name=own):
            name = own
        case ir.Operation(operator="+" | "-" as operator, operands=(left, right)):
            first = _add(left, factor, terms, others)
            return first + _add(right, factor if operator == "+" else -factor, terms, others)
        case ir.Operation(operator="neg", operands=(operand,)):
            return _add(operand, -factor, terms, others)
        case ir.Operation(operator="*", operands=(left, right)):
            for known, other in ((left, right), (right, left)):
                if (k := ir.constant(known)) is not None:
                    return _add(other, factor * k, terms, others)
            others.append(value)
        case ir.Operation(operator="%", operands=(whole, ir.Number(value=divisor))) if divisor > 0:
            others.append(value)
            (of, number), _ = linear(whole)
            name = Rest(of, number % int(divisor), int(divisor))
        case _:
            others.append(value)
    terms[name] = terms.get(name, 0) + factor
    return 0


class _Unfit(Exception):
    """A loop that LLVM should look at."""


def _fitting(original: ir.For, body: ir.Body) -> Loop | None:
    node = replace(original, body=ir.written_out(original.body))
    if node.step is not ir.ONE or node.few or node.at_once or node.plain or node.often or not node.body:
        return None
    if _is_short(node) and len(node.rounds or ()) < WORTH:
        return None
    types = {n.memory.type for n in node.body if isinstance(n, ir.Store)}
    types |= {n.variable.type for n in node.body if isinstance(n, ir.Set) and n.variable.type.real}
    if len(types) != 1 or not (kind := types.pop()).real:
        return None
    try:
        return _Look(node, kind, _variable_around(original, body)).found(body, original)
    except _Unfit:
        return None


def _waits(found: Loop, loop: ir.For, body: ir.Body) -> bool:
    """Whether what LLVM would make of a short loop waits for itself, number after number: the largest of them, or a sum
    that goes on from loop to loop."""
    around = next((n.body for n in ir.statements(body) if isinstance(n, ir.For) and loop in n.body), body)
    begun = {n.variable.name for n in around if isinstance(n, ir.Set)}
    return any(made_by in EXTREMES or name not in begun for name, made_by in found.sums.items())


def _variable_around(loop: ir.For, body: ir.Body) -> str | None:
    around = [n for n in ir.statements(body) if isinstance(n, ir.For) and any(s is loop for s in ir.statements(n.body))]
    return around[-1].variable.name if around else None


class _Look:
    """A look at one loop, statement after statement."""

    def __init__(self, node: ir.For, kind: ir.Type, around: str | None = None) -> None:
        self.loop = Loop(node, kind)
        self.index = node.variable.name
        self.places: dict[ir.Memory, list[tuple[Form, bool]]] = {}  # of accesses, and whether they write
        self.around = around  # the variable of the loop around it, if there is one
        self.varying: dict[int, bool] = {}  # by identity

    def found(self, body: ir.Body, original: ir.For) -> Loop:
        """What is known of the loop, which stands in a function as it was before its inner ones were written out."""
        node, loop = self.loop.node, self.loop
        self.set = {n.variable.name for n in node.body if isinstance(n, ir.Set)}
        if self.index in self.set:
            raise _Unfit
        for statement in node.body:
            match statement:
                case ir.Set(variable=variable, value=value):
                    self.assign(variable, value)
                case ir.Store(memory=memory, offset=offset, value=value):
                    self.look(value)
                    self.access(memory, offset, writes=True)
                    loop.sure = loop.sure or (memory, offset)
                case _:
                    raise _Unfit
        if loop.own & _read_outside(body, original) or self.stays():
            raise _Unfit
        for accesses in self.places.values():
            _check_apart(accesses)
        if any(loop.allowed.values()) and loop.sure is None:
            raise _Unfit
        loop.alone = not any(map(_reads_what_it_writes, self.places.values()))
        return loop

    def stays(self) -> bool:
        """Whether few elements are added to in all steps of a loop around: LLVM keeps them in registers."""
        rounds, body = self.loop.node.rounds, self.loop.node.body
        if rounds is None or len(rounds) > FEW:
            return False
        moved = {
            name for accesses in self.places.values() for (terms, _), writes in accesses if writes for name, _ in terms
        }
        if self.around is None or self.around in moved:
            return False  # each step of it has elements of its own
        read = [memory for memory, accesses in self.places.items() for _, writes in accesses if not writes]
        first = {memory: accesses[0][1] for memory, accesses in self.places.items()}  # whether it writes
        added = any(isinstance(n, ir.Store) and not first[n.memory] for n in body)
        return added and len(read) <= LIGHT

    def assign(self, variable: ir.Variable, value: ir.Value) -> None:
        name, loop = variable.name, self.loop
        if variable.type != loop.type or name in loop.sums:
            raise _Unfit
        if name not in loop.own and name in _names(value):  # it goes on from the step before
            operator, rest = _sum_of(name, value)
            once = sum(isinstance(n, ir.Set) and n.variable.name == name for n in loop.node.body) == 1
            if not once or name in _names(rest):
                raise _Unfit
            self.look(rest)
            loop.sums[name] = operator
            others = [n for n in loop.node.body if not (isinstance(n, ir.Set) and n.variable.name == name)]
            if name in _names(others):
                raise _Unfit
        else:
            self.look(value)
            loop.own.add(name)

    def varies(self, value: ir.Value) -> bool:
        """Whether it changes from step to step."""
        if id(value) not in self.varying:
            match value:
                case ir.Variable(name=name):
                    found = name == self.index or name in self.set
                case _:
                    found = any(self.varies(part) for part in ir.parts_of(value) if isinstance(part, ir.Value))
            self.varying[id(value)] = found
        return self.varying[id(value)]

    def look(self, value: ir.Value, when: Conditions | None = ()) -> None:
        """`when`: what must hold where it is computed; None if that changes from step to step."""
        if not self.varies(value):
            self.steady(value, when)
            return
        match value:
            case ir.Variable(name=name, type=kind):
                if name not in self.loop.own or kind != self.loop.type:
                    raise _Unfit  # the index as a number
            case ir.Load(memory=memory, offset=offset):
                self.load(value, when)
                self.access(memory, offset, writes=False)
            case ir.Operation(operator=operator, operands=operands):
                self.operation(value, operator, operands, when)
            case ir.Choice(test=test, yes=yes, no=no, lazy=lazy):
                self.look(test, when)
                for branch, answer in ((yes, True), (no, False)):
                    self.look(branch, self.also(when, test, answer) if lazy else when)
            case ir.Call(function=name, arguments=arguments):
                self.call(name, arguments[0].type)
                for argument in arguments:
                    self.look(argument, when)
            case _:
                raise _Unfit

    def also(self, when: Conditions | None, test: ir.Value, answer: bool) -> Conditions | None:
        """The same, and another answer that a test must have."""
        if when is None or self.varies(test) or not _is_harmless(test):
            return None
        return (*when, (test, answer))

    def load(self, node: ir.Load, when: Conditions | None) -> None:
        """Where it is not allowed, a vector is read from a place that is."""
        if when is None or self.loop.allowed.get(id(node), when) != when:
            raise _Unfit
        self.loop.allowed[id(node)] = when
        if not when:
            self.loop.sure = self.loop.sure or (node.memory, node.offset)

    def operation(
        self, node: ir.Operation, operator: str, operands: tuple[ir.Value, ...], when: Conditions | None
    ) -> None:
        if operator in TRUTHS:
            first_decides = operator in ("and", "or")
            sides = [None if first_decides and k else when for k in range(len(operands))]
        else:
            real = all(v.type == self.loop.type for v in operands)
            if not real or operator not in ORDERS | REAL:
                raise _Unfit
            sides = [when] * len(operands)
        for operand, asked in zip(operands, sides, strict=True):
            self.look(operand, asked)

    def call(self, name: str, kind: ir.Type) -> None:
        function = made(name, kind)
        if name in EXTREMES and OLD:
            raise _Unfit
        if kind != self.loop.type or (function is None and name not in INSTRUCTIONS):
            raise _Unfit
        if function is not None and (function.body or not _in_vectors(function.value)):
            raise _Unfit
        self.loop.called.add(name)

    def access(self, memory: ir.Memory, offset: ir.Value, writes: bool) -> None:
        form, others = linear(offset)
        terms = dict(form[0])
        if memory.type != self.loop.type or terms.get(self.index) != 1 or terms.keys() & self.set:
            raise _Unfit
        for value in others:
            if self.varies(value):
                raise _Unfit
            self.steady(value)
        self.places.setdefault(memory, []).append((form, writes))

    def steady(self, value: ir.Value, when: Conditions | None = ()) -> None:
        """What is the same in all steps may be computed before them, if they compute it in any case, or it harms
        nobody, and none writes what it reads."""
        stored = {n.memory for n in self.loop.node.body if isinstance(n, ir.Store)}
        if any(isinstance(node, ir.Load) and node.memory in stored for node in ir.walk(value)):
            raise _Unfit
        if when != () and not _is_harmless(value):
            raise _Unfit


def _is_harmless(value: ir.Value) -> bool:
    """Whether it can be computed where nobody asks for it."""
    return all(
        isinstance(node, ir.Number | ir.Variable)
        or (isinstance(node, ir.Operation) and (node.type.real or node.operator not in ("//", "%")))
        for node in ir.walk(value)
    )


def _reads_what_it_writes(accesses: Iterable[tuple[Form, bool]]) -> bool:
    """Whether one tensor is read in slices that are written, too."""
    accesses = list(accesses)
    written = {terms for (terms, _), writes in accesses if writes}
    return any(terms in written for (terms, _), writes in accesses if not writes)


def _in_vectors(value: ir.Value) -> bool:
    """Whether all of a function has instructions for vectors."""
    return all(_has_vectors(node) for node in ir.walk(value))


def _has_vectors(node: ir.Value) -> bool:
    match node:
        case ir.Number() | ir.Variable() | ir.Cast() | ir.Bits() | ir.Choice(lazy=False):
            return True
        case ir.Operation(operator=operator, operands=operands):
            kind = operands[0].type
            return operator in (ORDERS | TRUTHS | REAL if kind.real or kind == ir.TRUTH else ORDERS | WHOLE)
        case ir.Call(function=name, arguments=(first, *_)):
            inner = made(name, first.type)
            return name in INSTRUCTIONS if inner is None else not inner.body and _in_vectors(inner.value)
    return False


def _sum_of(name: str, value: ir.Value) -> tuple[str, ir.Value]:
    """`v + x`, `x + v`, `v - x`, or the larger or smaller of v and x: the operation, and x."""
    match value:
        case ir.Operation(operator="+" | "-" as operator, operands=(ir.Variable(name=first), rest), apart=False):
            if first == name:
                return operator, rest
        case ir.Call(function="maximum" | "minimum" as operator, arguments=(ir.Variable(name=first), rest)):
            if first == name:
                return operator, rest
    match value:
        case ir.Operation(operator="+", operands=(rest, ir.Variable(name=second)), apart=False) if second == name:
            return "+", rest
    raise _Unfit


def _names(values: object) -> set[str]:
    return {n.name for n in ir.walk(values) if isinstance(n, ir.Variable)}


def _read_outside(body: ir.Body, loop: ir.For) -> set[str]:
    """Variables whose values are asked for by more than the body of a loop."""
    found: set[str] = set()
    inside = {id(inner) for inner in ir.statements(loop.body)}
    for statement in ir.statements(body):
        if statement is not loop and id(statement) not in inside:
            found |= _names(_values_of(statement))
    return found | _names((loop.first, loop.past))


def _values_of(statement: ir.Statement) -> tuple[object, ...]:
    """What a statement reads, without those that stand in it."""
    match statement:
        case ir.Set(value=value):
            return (value,)
        case ir.For(first=first, past=past, step=step):
            return (first, past, step)
        case ir.While(test=test) | ir.If(test=test):
            return (test,)
    return (statement,)


def _check_apart(accesses: Iterable[tuple[Form, bool]]) -> None:
    """One tensor: what is written meets nothing else within a vector, unless it is the same element."""
    accesses = list(accesses)
    for one, writes in accesses:
        if writes and not all(other == one or _are_apart(one, other) for other, _ in accesses):
            raise _Unfit


def _are_apart(one: Form, other: Form) -> bool:
    """Whether two places differ by a number that leaves vectors apart, or lie in slices of their own."""
    (terms, first), (others, second) = one, other
    if terms == others:
        return abs(first - second) >= APART
    differing = {*terms} ^ {*others}
    if len(differing) != 2:
        return False
    (a, step), (b, same) = differing
    slices = isinstance(a, Rest) and isinstance(b, Rest) and replace(a, number=b.number) == b and step == same
    return slices and abs(step) - abs(first - second) >= APART
