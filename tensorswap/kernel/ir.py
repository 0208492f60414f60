"""The kernel IR: what a kernel does, in loops, branches and stores, on numbers of exact types and flat memory.

    statement ::= Set(variable, value)                      variable = value
                | Store(memory, offset, value)              memory[offset] = value
                | For(variable, first, past, step, body)    for variable in range(first, past, step); if `plain`, by
                                                            1 or -1, with nothing in it that takes long
                | While(test, body)
                | If(test, then, otherwise)
                | Skip()                                    the next round of the innermost loop
                | Leave()                                   the end of the innermost loop, or of some of its rounds:
                                                            those that are left change nothing
                | Choose(memory, test, yes, no)             memory is one of two
                | Point(memory, address)                    memory begins at an address (machine code only)
                | Hold(memory, elements)                    memory of its own, for as long as the step or kernel runs
                | Step(number, comment, body)               a function of its own, called here
                | TileCall(tile, a, b, y, ...)              a register tile: see kernel/tile.py
                | Turn(target, to, source, at, ...)         a turned copy: see kernel/turned.py
                | Lay(target, to, source, at, ...)          rows side by side that come to stand one below the other
                | Launch(kernel, parts, context, threads)   runs another kernel (machine code only)
                | Serve()                                   helps with launches for ever (machine code only)
    value     ::= Number(value) | Variable(name) | Load(memory, offset)
                | Operation(operator, operands)             + - * / // %  < <= > >= == !=  neg not  and or
                                                            both either  min max  & | ^ << >>
                | Choice(test, yes, no)                     only the branch that is taken is evaluated, if `lazy`
                | Cast(value, type) | Bits(value, type)     the same number, the same bits
                | Call(function, arguments)                 of kernel/functions
                | Entry(table, index)                       of a table of constants

Every value has a type, and operands of one operation have the same type: nothing is promoted. `and`, `or` evaluate
their right side only where they must; `both`, `either` evaluate both. Whole numbers divide towards minus infinity. But
for variables and loads, a value does not depend on when it is computed, so that several others may share it. Nothing
here changes once it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from ..lazy import cached_property


@dataclass(frozen=True)
class Type:
    """A kind of number: "f" real, "i" whole, "u" whole and at least 0, "b" truth; and its size in bytes."""

    kind: str
    size: int

    def __str__(self) -> str:
        return f"{self.kind}{self.size}"

    @property
    def real(self) -> bool:
        return self.kind == "f"

    @property
    def whole(self) -> bool:
        return self.kind in "iu"


F4, F8, I4, U1, U4, U8 = (Type(text[0], int(text[1])) for text in ("f4", "f8", "i4", "u1", "u4", "u8"))
WORD, TRUTH = Type("i", 8), Type("b", 1)


@cache
def type_of(dtype: np.dtype[Any]) -> Type:
    """Of numbers that are computed with."""
    return Type(dtype.kind, dtype.itemsize)


def type_in_memory(dtype: np.dtype[Any]) -> Type:
    """Of numbers that lie in memory: a truth is a byte there."""
    return U1 if dtype.kind == "b" else type_of(dtype)


class Value:
    """A number. Arithmetic with others and with Python's numbers gives values; whole constants are folded."""

    __slots__ = ("_parts",)  # once they were asked for
    type: Type

    def __add__(self, other: Value | float) -> Value:
        return arithmetic("+", self, other)

    def __sub__(self, other: Value | float) -> Value:
        return arithmetic("-", self, other)

    def __mul__(self, other: Value | float) -> Value:
        return arithmetic("*", self, other)

    def __truediv__(self, other: Value | float) -> Value:
        return arithmetic("/", self, other)

    def __floordiv__(self, other: Value | float) -> Value:
        return arithmetic("//", self, other)

    def __neg__(self) -> Value:
        return negative(self)


@dataclass(frozen=True, eq=False, slots=True)
class Number(Value):
    value: float | int
    type: Type


@dataclass(frozen=True, eq=False, slots=True)
class Variable(Value):
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Memory:
    """Numbers side by side: an array, or a part of one."""

    name: str
    type: Type


@dataclass(frozen=True, eq=False, slots=True)
class Load(Value):
    memory: Memory
    offset: Value

    @property
    def type(self) -> Type:  # type: ignore[override]
        return self.memory.type


@dataclass(frozen=True, eq=False, slots=True)
class Operation(Value):
    """`apart`: its rounding may not be merged with that of another operation."""

    operator: str
    operands: tuple[Value, ...]
    type: Type
    apart: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Choice(Value):
    test: Value
    yes: Value
    no: Value
    lazy: bool = False

    @property
    def type(self) -> Type:  # type: ignore[override]
        return self.yes.type


@dataclass(frozen=True, eq=False, slots=True)
class Cast(Value):
    value: Value
    type: Type


@dataclass(frozen=True, eq=False, slots=True)
class Bits(Value):
    value: Value
    type: Type


@dataclass(frozen=True, eq=False, slots=True)
class Call(Value):
    function: str
    arguments: tuple[Value, ...]
    type: Type


@dataclass(frozen=True)
class Table:
    """Constants of float64."""

    name: str
    numbers: tuple[float, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Entry(Value):
    table: Table
    index: Value
    type: Type = F8


# -- statements


class Statement:
    __slots__ = ("_parts",)


Body = tuple[Statement, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Set(Statement):
    variable: Variable
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Store(Statement):
    memory: Memory
    offset: Value
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class For(Statement):
    variable: Variable
    first: Value
    past: Value
    step: Value
    body: Body
    plain: bool = False  # a step of it may go unstopped, so that it looks only now and then if its work is wanted
    at_once: tuple[int, int] | None = None  # lanes and vectors: so many that its steps are all of their lanes
    few: bool = False  # a few rounds, known before, which are written out
    often: bool = False  # its steps are short and many: what it calls should be near
    edge: bool = False  # a few rounds beside another loop: vectors would not pay

    @property
    def down(self) -> bool:
        return isinstance(self.step, Number) and self.step.value < 0

    @property
    def rounds(self) -> range | None:
        """What the variable is, one after the other, if that is known."""
        first, past, step = (constant(value) for value in (self.first, self.past, self.step))
        return range(first, past, step) if first is not None and past is not None and step else None


@dataclass(frozen=True, eq=False, slots=True)
class While(Statement):
    test: Value
    body: Body
    stops: bool = False  # it looks before each round if its work is wanted


@dataclass(frozen=True, eq=False, slots=True)
class If(Statement):
    test: Value
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, eq=False, slots=True)
class Skip(Statement):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class Leave(Statement):
    pass


@dataclass(frozen=True, eq=False, slots=True)
class Choose(Statement):
    memory: Memory
    test: Value
    yes: Memory
    no: Memory


@dataclass(frozen=True, eq=False, slots=True)
class Point(Statement):
    memory: Memory
    address: Value


@dataclass(frozen=True, eq=False, slots=True)
class Hold(Statement):
    memory: Memory
    elements: int


@dataclass(frozen=True, eq=False)
class Step(Statement):
    number: int
    comment: str
    body: Body

    @cached_property
    def free(self) -> tuple[list[Variable], list[Memory]]:
        """What it takes: all printers ask, some of them twice."""
        return free(self.body)


LOOPS = 4  # over steps of a sum, one inside the other, that a tile has


@dataclass(frozen=True)
class Tile:
    """A block of a sum of products that stays in registers. Its rows have vectors of `lanes` numbers, or some of the
    lanes of one; of a dot tile each element has one. Its name says all of it."""

    form: str  # "outer", "lane" or "dot"
    type: Type
    rows: int
    columns: int
    lanes: int

    @property
    def name(self) -> str:
        return f"{self.form}_{self.type}_{self.rows}_{self.columns}_{self.lanes}"

    @property
    def places(self) -> list[int]:
        """Where the vectors of a row begin: side by side, but the last ends with the row, over a part of the one before
        it if it must. Of a dot tile, all columns."""
        if self.form == "dot":
            return list(range(self.columns))
        if self.columns < self.lanes:
            return [0]
        return [min(place, self.columns - self.lanes) for place in range(0, self.columns, self.lanes)]

    def of_whole_vectors(self) -> Tile:
        """The same with no more lanes than columns, for registers without masks."""
        lanes = self.lanes
        while self.form != "dot" and lanes > self.columns:
            lanes //= 2
        return replace(self, lanes=lanes)


@dataclass(frozen=True, eq=False, slots=True)
class Panel:
    """Where a tile reads or writes: memory, the place of its first element, how far apart rows and columns are."""

    memory: Memory
    at: Value
    row: Value
    column: Value


@dataclass(frozen=True, eq=False, slots=True)
class TileCall(Statement):
    """y = scale * sum of a * b, or, if `add` holds, y += that. `loops` are those of the sum, the innermost last: how
    often, and how far each moves through a and b."""

    tile: Tile
    a: Panel
    b: Panel
    y: Panel
    loops: tuple[tuple[Value, Value, Value], ...]
    scale: Value
    add: Value


class Copy(Statement):
    """Numbers that come to lie in another order."""

    __slots__ = ()

    @property
    def loops(self) -> For:
        """The same, one number at a time."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, slots=True)
class Turn(Copy):
    """target[to + k*across + r] = source[at + r*apart + k] for k below `steps` and r below `lanes`."""

    target: Memory
    to: Value
    across: Value
    source: Memory
    at: Value
    apart: Value
    steps: Value
    lanes: int

    @property
    def loops(self) -> For:
        lane, step = Variable("turned_lane", WORD), Variable("turned_step", WORD)
        read = Load(self.source, self.at + lane * self.apart + step)
        copy = Store(self.target, self.to + step * self.across + lane, read)
        return For(lane, ZERO, word(self.lanes), ONE, (For(step, ZERO, self.steps, ONE, (copy,)),))


@dataclass(frozen=True, eq=False, slots=True)
class Lay(Copy):
    """target[to + p*far + k*lanes + r] = source[at + k*apart + p*lanes + r] for k below `steps`, p below `panels` and r
    below `lanes`."""

    target: Memory
    to: Value
    far: Value
    source: Memory
    at: Value
    apart: Value
    steps: Value
    panels: int
    lanes: int

    @property
    def loops(self) -> For:
        step, panel, lane = (Variable(f"laid_{name}", WORD) for name in ("step", "panel", "lane"))
        number: Value = ZERO if self.panels == 1 else panel
        read = Load(self.source, self.at + step * self.apart + number * self.lanes + lane)
        copy = Store(self.target, self.to + number * self.far + step * self.lanes + lane, read)
        inner = For(lane, ZERO, word(self.lanes), ONE, (copy,))
        if self.panels > 1:
            inner = For(panel, ZERO, word(self.panels), ONE, (inner,))
        return For(step, ZERO, self.steps, ONE, (inner,))


LONG = For | While | Step | TileCall | Copy  # what takes longer than a plain assignment


@dataclass(frozen=True, eq=False, slots=True)
class Launch(Statement):
    kernel: Value
    parts: Value
    context: Value
    threads: Value


@dataclass(frozen=True, eq=False, slots=True)
class Serve(Statement):
    pass


# -- kernels


class Role(Enum):
    """What a number of a kernel's context is."""

    TENSOR = "the address of a tensor"
    LOCAL = "where a tensor of one part starts, in the memory that the part has to itself"
    COPY = "where the copies of a tensor start that all parts but the first have"
    OWN = "the address of that tensor, which the first part adds to"
    COPIES = "how many copies there are"
    SIZE = "a plain number"
    STEP = "the step of a block at hand: the first word of a kernel that runs once in each"


@dataclass(frozen=True)
class Word:
    """One number of a context: what the kernel calls it or the memory that it tells of, and what it is of. A copy has
    the size of each in bytes, and the address of the first part's own."""

    place: Variable | Memory
    role: Role
    item: Any
    bytes: Variable | None = None
    own: Variable | None = None


@dataclass(frozen=True, eq=False)
class Kernel:
    """What one part does: `part` is its number, `parts` how many there are."""

    words: tuple[Word, ...]
    body: Body


PART, PARTS = Variable("part", WORD), Variable("parts", WORD)


# -- making them


def number(value: float, type: Type) -> Number:
    return Number(float(value) if type.real else int(value), type)


def word(value: Value | int) -> Value:
    return value if isinstance(value, Value) else Number(value, WORD)


ZERO, ONE = Number(0, WORD), Number(1, WORD)
TRUE, FALSE = Number(1, TRUTH), Number(0, TRUTH)


def constant(value: Value | int) -> int | None:
    """The whole number that a value always is, if that is known."""
    if isinstance(value, int):
        return value
    return int(value.value) if isinstance(value, Number) and value.type.whole else None


def is_zero(value: Value) -> bool:
    return constant(value) == 0


def wrapped(value: int, type: Type) -> int:
    """A whole number as so many bits hold it."""
    if type.kind == "u":
        return value % (1 << (8 * type.size))
    half = 1 << (8 * type.size - 1)
    return (value + half) % (2 * half) - half


def arithmetic(operator: str, left: Value, other: Value | float) -> Value:
    right = other if isinstance(other, Value) else number(other, left.type)
    if left.type.whole:
        folded = _folded(operator, left, right)
        if folded is not None:
            return folded
    return Operation(operator, (left, right), left.type)


def _folded(operator: str, left: Value, right: Value) -> Value | None:
    a, b = constant(left), constant(right)
    if a is not None and b is not None and (b or operator not in ("//", "%")):
        result = {"+": a + b, "-": a - b, "*": a * b, "//": a // b if b else 0, "%": a % b if b else 0}[operator]
        return Number(wrapped(result, left.type), left.type)
    if (operator in "+-" and b == 0) or (operator in ("*", "//") and b == 1):
        return left
    if (operator == "+" and a == 0) or (operator == "*" and a == 1):
        return right
    return Number(0, left.type) if operator == "*" and 0 in (a, b) else None


def negative(value: Value) -> Value:
    known = constant(value)
    if known is not None:
        return Number(wrapped(-known, value.type), value.type)
    return Operation("neg", (value,), value.type)


def compare(operator: str, left: Value, right: Value | float) -> Value:
    other = right if isinstance(right, Value) else number(right, left.type)
    return Operation(operator, (left, other), TRUTH)


def negation(test: Value) -> Value:
    return Operation("not", (test,), TRUTH)


def joined(operator: str, tests: list[Value]) -> Value:
    """All of the tests, or one of them: `and`, `or`, `both` or `either`. None of them is true, or false."""
    if not tests:
        return TRUE if operator in ("and", "both") else FALSE
    result = tests[0]
    for test in tests[1:]:
        result = Operation(operator, (result, test), TRUTH)
    return result


def extreme(operator: str, parts: list[Value]) -> Value:
    """The `min` or `max` of whole numbers."""
    known = [k for k in map(constant, parts) if k is not None]
    rest = [part for part in parts if constant(part) is None]
    if known:
        rest.insert(0, Number((min if operator == "min" else max)(known), parts[0].type))
    return rest[0] if len(rest) == 1 else Operation(operator, tuple(rest), parts[0].type)


def least(*parts: Value | int) -> Value:
    return extreme("min", [word(part) for part in parts])


def most(*parts: Value | int) -> Value:
    return extreme("max", [word(part) for part in parts])


def end_of_piece(first: Value, length: int, low: Value, high: Value) -> Value:
    """Where a piece of a range ends. If all are as long, it is known how long each is."""
    count = constant(high - low)
    return first + length if count is not None and count % length == 0 else least(first + length, high)


def cast(value: Value, type: Type) -> Value:
    """The number in another type. Of a constant, another constant."""
    if value.type == type:
        return value
    if isinstance(value, Number) and type != TRUTH and not (value.type.real and type.whole):
        changed = wrapped(int(value.value), type) if type.whole else float(value.value)
        return Number(changed, type)
    return Cast(value, type)


def total(parts: list[Value]) -> Value:
    result: Value = ZERO
    for part in parts:
        result = result + part
    return result


# -- looking at them


def parts_of(node: Any) -> tuple[Any, ...]:
    """Values, memories and statements that a value or statement consists of, in the order of its fields. A node keeps
    them: it never changes, and passes walk over all nodes again and again."""
    try:
        return node._parts  # type: ignore[no-any-return]  # a slot, that others than this function do not read
    except AttributeError:
        found = tuple(_listed(node))
        object.__setattr__(node, "_parts", found)
        return found


def _listed(node: Any) -> list[Any]:
    found: list[Any] = []
    for name in _field_names(node.__class__):
        _list(getattr(node, name), found)
    return found


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Of those fields that may hold some."""
    return tuple(field.name for field in fields(kind) if field.type not in _WORDS)


def _list(item: Any, found: list[Any]) -> None:
    if isinstance(item, _PARTS):
        found.append(item)
    elif isinstance(item, tuple):
        for part in item:
            _list(part, found)
    elif isinstance(item, Panel):
        found += _listed(item)


_PARTS = (Value, Statement, Memory)
_WORDS = ("str", "bool", "int", "float | int", "Type", "Tile", "Table", "tuple[int, int] | None")


def written_out(body: Body) -> Body:
    """Loops of a few rounds, round after round."""
    found: list[Statement] = []
    for node in body:
        if isinstance(node, For) and node.few:
            for number in node.rounds or ():
                inner = [_where(part, node.variable.name, word(number)) for part in node.body]
                found += written_out(tuple(inner))
        else:
            found.append(node)
    return tuple(found)


def _where(node: Any, name: str, value: Value) -> Any:
    """A value or statement where a variable has a value."""
    if isinstance(node, Variable):
        return value if node.name == name else node
    if isinstance(node, tuple):
        return tuple(_where(part, name, value) for part in node)
    if not isinstance(node, Value | Statement):
        return node
    kind: type = node.__class__
    parts = {field: getattr(node, field) for field in _field_names(kind)}
    changed = {field: _where(part, name, value) for field, part in parts.items()}
    same = all(changed[field] is part for field, part in parts.items())
    return node if same else replace(node, **changed)  # type: ignore[type-var]  # all of them are dataclasses


def free(body: Body) -> tuple[list[Variable], list[Memory]]:
    """The variables and memories that statements use and do not make, in the order in which they are met."""
    variables: dict[str, Variable] = {}
    memories: dict[str, Memory] = {}
    made: set[str] = set()
    for node in walk(body):
        match node:
            case Set(variable=variable) | For(variable=variable):
                made.add(variable.name)
            case Choose(memory=memory) | Point(memory=memory) | Hold(memory=memory):
                made.add(memory.name)
            case Variable(name=name):
                variables.setdefault(name, node)
            case Memory(name=name):
                memories.setdefault(name, node)
    return (
        [v for name, v in variables.items() if name not in made],
        [m for name, m in memories.items() if name not in made],
    )


def statements(body: Body) -> Iterator[Statement]:
    """All statements of a body, each before those inside it, and none of their values: much less than `walk` meets."""
    for node in body:
        yield node
        match node:
            case For(body=inner) | While(body=inner) | Step(body=inner):
                yield from statements(inner)
            case If(then=then, otherwise=otherwise):
                yield from statements(then)
                yield from statements(otherwise)


def walk(nodes: Any) -> Iterator[Any]:
    """All values, memories and statements within, each before its parts; a shared value once."""
    seen: set[int] = set()
    stack: list[Any] = []
    _list(nodes, stack)
    stack.reverse()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if not isinstance(node, Memory):
            stack += parts_of(node)[::-1]
