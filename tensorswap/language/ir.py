"""The IR: what a program is, as frozen typed nodes.

    Loops      := header? statics arrays ranges sizes body returns?
    Header     := name arguments outputs                    def name(X[i,j], rate=0.1, stride: int) -> Y[i]:
    Item       := Statement | Block
    Block      := for index [down]: Item+
    Statement  := target OP value [if guard]
    Expr       := Number | Index | Static | Size | AxisSize | Access | Unary | Binary | Compare | Logic
                | Conditional | Call | Inside

A scalar is an `Access` without indices. The batch marker `...` is an index of that name until a call tells how
many axes it stands for. Every node knows its source span, which plays no part in equality.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

from ..errors import Span
from ..lazy import cached_property

BATCH = "..."  # the name of the index that stands for any further leading axes


@dataclass(frozen=True, slots=True)
class Node:
    """What all nodes have: their place in the source, if they stood in one."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False)
class Number(Node):
    """A number as it is written: `2` is whole, `2.0` is not, and `0.0` is not `-0.0`."""

    value: int | float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Number) or self.value != other.value:
            return False
        if isinstance(self.value, float) != isinstance(other.value, float):
            return False
        return self.value != 0 or math.copysign(1, self.value) == math.copysign(1, other.value)

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Index(Node):
    """An index of the loop: in a bracket, or as a number."""

    name: str


@dataclass(frozen=True, slots=True)
class Static(Node):
    """A static integer: given at the call, constant in the program."""

    name: str


@dataclass(frozen=True, slots=True)
class Size(Node):
    """`size(i)`: the extent of an index."""

    index: str


@dataclass(frozen=True, slots=True)
class AxisSize(Node):
    """`size(X, 0)`: the extent of a tensor's axis."""

    tensor: str
    axis: int


@dataclass(frozen=True, slots=True)
class Access(Node):
    """`X[i,j]`: an element of a tensor; without indices, a scalar."""

    tensor: str
    indices: tuple[Expr, ...] = ()

    @property
    def batched(self) -> bool:
        """Whether `...` stands for some of the axes."""
        return any(isinstance(e, Index) and e.name == BATCH for e in self.indices)


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-x` or `not x`."""

    operator: str  # "-" or "not"
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`a + b` and the other arithmetic of two operands."""

    operator: str  # + - * / ** // %
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`a < b` and the other comparisons."""

    operator: str  # < <= > >= == !=
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`a and b`, `a or b`."""

    operator: str  # "and" or "or"
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`then if condition else otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function of the language with its arguments."""

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Inside(Node):
    """The guard atom that holds where every access that the point evaluates is in bounds."""


@dataclass(frozen=True, slots=True)
class Several(Node):
    """`(2, 1)`: an argument of a call of a definition, whose parameter has several parts. Gone once it is inlined."""

    values: tuple[Expr, ...]


Expr = (
    Number | Index | Static | Size | AxisSize | Access | Unary | Binary | Compare | Logic | Conditional | Call | Inside
    | Several
)  # fmt: skip

SUM = frozenset({"+=", "-="})


def reduction(operator: str) -> str:
    """The reduction behind an operator: `+=` and `-=` are one."""
    return "+=" if operator in SUM else operator


@dataclass(frozen=True)
class Statement(Node):
    """`target OP value if guard`: one loop nest."""

    target: Access
    operator: str
    value: Expr
    guard: Expr | None = None

    @cached_property
    def nodes(self) -> tuple[Expr, ...]:
        """Every expression node, target first, in the order of the text."""
        guard = () if self.guard is None else walk(self.guard)
        return (*walk(self.target), *walk(self.value), *guard)

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """Every access that is read: gathers inside the target's own indices too."""
        return tuple(n for n in self.nodes if isinstance(n, Access) and n is not self.target)

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """The indices named, in order of first appearance: what the statement loops over, blocks aside."""
        return tuple(dict.fromkeys(n.name for n in self.nodes if isinstance(n, Index)))

    @cached_property
    def asks_inside(self) -> bool:
        """Whether `inside` stands in its guard: then it speaks of all of its accesses."""
        return any(isinstance(n, Inside) for n in self.nodes)


@dataclass(frozen=True, slots=True)
class Block(Node):
    """`for t:` or `for t down:`: steps in order."""

    index: str
    body: tuple[Item, ...]
    down: bool = False


@dataclass(frozen=True, slots=True)
class CallStatement(Node):
    """`P = softmax(S)`: lives only until calls are inlined. Targets and arguments are accesses with leading indices."""

    targets: tuple[Access, ...]
    function: str
    arguments: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()


Item = Statement | Block | CallStatement


@dataclass(frozen=True, slots=True)
class SizeDeclaration(Node):
    """`size(i) = ...` or `size(X, 0) = ...`. What a rule wrote down of an inferred size gives way to the caller's."""

    subject: Size | AxisSize
    value: Expr
    inferred: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StaticDeclaration(Node):
    """`stride: int`, `stride: int = 1`, or `stride: int = kernel` after another static integer.

    `stride: int[stride_h,stride_w]` is two of them, each with the name of the `option` that stands for both.
    """

    name: str
    default: int | str | None = None
    option: str | None = None


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """A tensor `X[i,j]` of a header, or a scalar `rate`, perhaps with a default: the value of each element."""

    access: Access
    default: int | float | None = None

    @property
    def name(self) -> str:
        return self.access.tensor


@dataclass(frozen=True, slots=True)
class Header(Node):
    """`def name(arguments) -> outputs:`."""

    name: str
    arguments: tuple[Argument | StaticDeclaration, ...]
    outputs: tuple[Access, ...]

    @property
    def parameters(self) -> dict[str, tuple[Argument | StaticDeclaration, ...]]:
        """What a call passes, in order: an argument, or the parts of an option."""
        found: dict[str, tuple[Argument | StaticDeclaration, ...]] = {}
        for argument in self.arguments:
            option = argument.option if isinstance(argument, StaticDeclaration) else None
            name = option or argument.name
            found[name] = (*found.get(name, ()), argument) if option else (argument,)
        return found


@dataclass(frozen=True)
class Loops(Node):
    """A whole program. `arrays` are inputs whose axes are declared, `X[...,c]: array`, and `ranges` indices that no
    bracket shows, `i: index`. `known` are names that a caller may pass although nothing uses them: tensors with the
    access that they had, and indices."""

    body: tuple[Item, ...]
    sizes: tuple[SizeDeclaration, ...] = ()
    statics: tuple[StaticDeclaration, ...] = ()
    returns: tuple[str, ...] | None = None
    header: Header | None = None
    arrays: tuple[Access, ...] = ()
    ranges: tuple[Index, ...] = ()
    known: Mapping[str, Access | None] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """All statements in order, those inside blocks too."""
        return tuple(statement for statement, _ in self.located)

    @cached_property
    def located(self) -> tuple[tuple[Statement, tuple[Block, ...]], ...]:
        """Each statement with the blocks around it, outermost first."""
        return tuple(_located(self.body, ()))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Names that a statement writes, in order of the first write."""
        return tuple(dict.fromkeys(s.target.tensor for s in self.statements))

    @cached_property
    def read(self) -> frozenset[str]:
        """Names whose values a statement reads."""
        return frozenset(a.tensor for s in self.statements for a in s.reads)

    @cached_property
    def mentioned(self) -> tuple[str, ...]:
        """Names read, or asked for their size, in order of first appearance."""
        names: dict[str, None] = dict.fromkeys(a.tensor for a in self.arrays)
        for declaration in self.sizes:
            names |= dict.fromkeys(n.tensor for n in walk(declaration.value) if isinstance(n, AxisSize))
        for statement in self.statements:
            for node in statement.nodes:
                if isinstance(node, Access | AxisSize) and node is not statement.target:
                    names[node.tensor] = None
        return tuple(names)

    @cached_property
    def updated(self) -> frozenset[str]:
        """Inputs whose own name is written: `W[i] = W[i] - ...`."""
        if self.header:
            arguments = {a.name for a in self.header.arguments}
            return frozenset(n for n in self.written if n in arguments)
        found: set[str] = set()
        written: set[str] = set()
        early: dict[str, list[tuple[Block, ...]]] = {}  # the blocks around each read that comes before any write
        for statement, blocks in self.located:
            for access in statement.reads:
                if access.tensor not in written:
                    early.setdefault(access.tensor, []).append(blocks)
            name = statement.target.tensor
            if name not in written and name in early and statement.operator == "=":
                steps = [b for b in blocks if any(b.index in index_names(e) for e in statement.target.indices)]
                if not any(all(any(step is b for b in around) for around in early[name]) for step in steps):
                    found.add(name)
            written.add(name)
        return frozenset(found)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        if self.header:
            return tuple(a.name for a in self.header.arguments if isinstance(a, Argument))
        written = set(self.written) - self.updated
        return tuple(n for n in self.mentioned if n not in written)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        if self.header:
            return tuple(a.tensor for a in self.header.outputs)
        return self.default_outputs if self.returns is None else self.returns

    @cached_property
    def default_outputs(self) -> tuple[str, ...]:
        """Names written and never read by another statement, and updated inputs."""
        read_elsewhere = {a.tensor for s in self.statements for a in s.reads if a.tensor != s.target.tensor}
        return tuple(n for n in self.written if n not in read_elsewhere or n in self.updated)

    @cached_property
    def static_names(self) -> tuple[str, ...]:
        if self.header:
            return tuple(a.name for a in self.header.arguments if isinstance(a, StaticDeclaration))
        return tuple(s.name for s in self.statics)

    @cached_property
    def static_defaults(self) -> dict[str, int | str]:
        declared = self.header.arguments if self.header else self.statics
        return {d.name: d.default for d in declared if isinstance(d, StaticDeclaration) and d.default is not None}

    @cached_property
    def options(self) -> dict[str, tuple[str, ...]]:
        """The static integers that one name stands for: `stride` for `stride_h` and `stride_w`."""
        parameters = self.header.parameters if self.header else {}
        return {name: tuple(p.name for p in parts) for name, parts in parameters.items() if len(parts) > 1}

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """Every index name, in order of first appearance."""
        names = dict.fromkeys(i for access in self.header_accesses for i in ordered_indices(access))
        names |= dict.fromkeys(i.name for i in self.ranges)
        for declaration in self.sizes:
            for node in (declaration.subject, *walk(declaration.value)):
                if isinstance(node, Size):
                    names[node.index] = None
        for statement, blocks in self.located:
            names |= dict.fromkeys(block.index for block in blocks)
            names |= dict.fromkeys(statement.indices)
            names |= dict.fromkeys(n.index for n in statement.nodes if isinstance(n, Size))
        return tuple(names)

    @cached_property
    def header_accesses(self) -> tuple[Access, ...]:
        """Tensors whose axes are declared: arguments and outputs of a header, or the inputs of `X[i]: array`."""
        if not self.header:
            return self.arrays
        arguments = tuple(a.access for a in self.header.arguments if isinstance(a, Argument))
        return arguments + self.header.outputs

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """Every access: those of the header, then of each statement the target and what it reads."""
        return (*self.header_accesses, *(a for s in self.statements for a in (s.target, *s.reads)))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name in use, of any kind: what a fresh name must avoid."""
        header = {a.tensor for a in self.header_accesses}
        static = {*self.static_names, *self.options}
        return frozenset({*self.indices, *self.written, *self.mentioned, *static, *self.known, *header})

    @cached_property
    def ranks(self) -> dict[str, int]:
        """The number of axes of each tensor that is accessed."""
        return {a.tensor: len(a.indices) for a in self.accesses}


def _located(body: tuple[Item, ...], blocks: tuple[Block, ...]) -> Iterator[tuple[Statement, tuple[Block, ...]]]:
    for item in body:
        if isinstance(item, Block):
            yield from _located(item.body, (*blocks, item))
        elif isinstance(item, Statement):
            yield item, blocks


# Traversal: every pass goes through these.


_CHILDREN: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Access: lambda n: n.indices,
    Call: lambda n: n.arguments,
    Binary: lambda n: (n.left, n.right),
    Compare: lambda n: (n.left, n.right),
    Logic: lambda n: (n.left, n.right),
    Unary: lambda n: (n.operand,),
    Conditional: lambda n: (n.then, n.condition, n.otherwise),
    Several: lambda n: n.values,
}


def children(node: Expr) -> tuple[Expr, ...]:
    part = _CHILDREN.get(type(node))
    return part(node) if part else ()


_REBUILT: dict[type, Callable[[Any, tuple[Any, ...]], Expr]] = {
    Access: lambda n, parts: Access(n.tensor, parts, span=n.span),
    Call: lambda n, parts: Call(n.function, parts, span=n.span),
    Binary: lambda n, parts: Binary(n.operator, *parts, span=n.span),
    Compare: lambda n, parts: Compare(n.operator, *parts, span=n.span),
    Logic: lambda n, parts: Logic(n.operator, *parts, span=n.span),
    Unary: lambda n, parts: Unary(n.operator, *parts, span=n.span),
    Conditional: lambda n, parts: Conditional(parts[1], parts[0], parts[2], span=n.span),
    Several: lambda n, parts: Several(parts, span=n.span),
}


def rebuild(node: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The node with other children."""
    return _REBUILT[type(node)](node, parts) if parts else node


def transform(node: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Applies `change` to every node, children first; nodes that do not change are kept as they are."""
    inner = _CHILDREN.get(type(node))
    if inner is not None:  # the hottest lines of the front half: no generator, no call that is not needed
        parts = inner(node)
        changed = [transform(part, change) for part in parts]
        for old, new in zip(parts, changed, strict=True):
            if old is not new:
                node = rebuild(node, tuple(changed))
                break
    return change(node)


def exchange(node: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with `new` wherever `old` stands."""
    return transform(node, lambda part: new if part == old else part)


def walk(node: Expr) -> list[Expr]:
    """The node and all below it, in the order of the text."""
    found, stack = [], [node]
    while stack:
        item = stack.pop()
        found.append(item)
        part = _CHILDREN.get(type(item))
        if part:
            stack.extend(reversed(part(item)))
    return found


def tensors_read(statement: Statement) -> frozenset[str]:
    return frozenset(a.tensor for a in statement.reads)


def index_names(node: Expr) -> frozenset[str]:
    return frozenset(n.name for n in walk(node) if isinstance(n, Index))


def ordered_indices(node: Expr) -> tuple[str, ...]:
    """The indices named, in order of first appearance."""
    return tuple(dict.fromkeys(n.name for n in walk(node) if isinstance(n, Index)))


def bare(node: Expr) -> str | None:
    """The index's name if the expression is nothing but an index."""
    return node.name if isinstance(node, Index) else None


def bare_indices(access: Access) -> frozenset[str]:
    return frozenset(e.name for e in access.indices if isinstance(e, Index))


def candidates(statement: Statement) -> list[str]:
    """The indices that tell the points which meet in one target element apart, in index order."""
    return [i for i in statement.indices if i not in bare_indices(statement.target)]


AnyStatement = TypeVar("AnyStatement", bound=Statement)


def map_statement(statement: AnyStatement, change: Callable[[Expr], Expr]) -> AnyStatement:
    """The statement with `change` applied to every expression node."""
    target = transform(statement.target, change)
    assert isinstance(target, Access)
    guard = None if statement.guard is None else transform(statement.guard, change)
    return replace(statement, target=target, value=transform(statement.value, change), guard=guard)


def rewrite(
    body: tuple[Item, ...],
    change: Callable[[Statement, tuple[Block, ...]], Iterable[Item]],
    blocks: tuple[Block, ...] = (),
) -> tuple[Item, ...]:
    """The body with what `change` gives for each statement in its place; it is told the blocks around, outermost
    first. A block that nothing is left of goes."""
    made: list[Item] = []
    for item in body:
        if isinstance(item, Block):
            inner = rewrite(item.body, change, (*blocks, item))
            made += [replace(item, body=inner)] if inner else []
        else:
            made += change(item, blocks) if isinstance(item, Statement) else [item]
    return tuple(made)


def map_items(body: tuple[Item, ...], change: Callable[[Statement], Item]) -> tuple[Item, ...]:
    """The body with `change` applied to every statement, inside blocks too."""
    return rewrite(body, lambda statement, _: [change(statement)])


def map_loops(loops: Loops, change: Callable[[Expr], Expr]) -> Loops:
    """The program with `change` applied to every expression, size declarations and header too."""

    def access(node: Access) -> Access:
        changed = transform(node, change)
        assert isinstance(changed, Access)
        return changed

    header = loops.header
    if header:
        arguments = tuple(
            replace(a, access=access(a.access)) if isinstance(a, Argument) else a for a in header.arguments
        )
        header = replace(header, arguments=arguments, outputs=tuple(access(o) for o in header.outputs))

    def declaration(item: SizeDeclaration) -> SizeDeclaration:
        subject = transform(item.subject, change)
        assert isinstance(subject, Size | AxisSize)
        return replace(item, subject=subject, value=transform(item.value, change))

    sizes = tuple(declaration(d) for d in loops.sizes)
    body = map_items(loops.body, lambda s: map_statement(s, change))
    return replace(loops, header=header, arrays=tuple(access(a) for a in loops.arrays), sizes=sizes, body=body)


def substitute_indices(values: dict[str, Expr]) -> Callable[[Expr], Expr]:
    """A change for `transform` that puts expressions in the place of indices."""
    return lambda node: values.get(node.name, node) if isinstance(node, Index) else node


def fresh(name: str, taken: set[str] | frozenset[str]) -> str:
    """The name itself, or the first of name1, name2, ... that is not taken."""
    return name if name not in taken else next(c for n in count(1) if (c := f"{name}{n}") not in taken)


def claim(name: str, taken: set[str]) -> str:
    """A fresh name, which is taken from now on."""
    taken.add(made := fresh(name, taken))
    return made


def depth(node: Expr) -> int:
    """How deep an expression nests, without recursion: it is asked before anything recursive may run."""
    deepest, level = 0, [node]
    while level:
        deepest += 1
        level = [part for item in level for part in children(item)]
    return deepest
