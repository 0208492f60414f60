"""Explanation: a program -> its statements, its adjoint statements, and what leads from one to the other, as data.

    Explanation   := text inputs outputs sizes statements adjoints backward refused
    Tensor        := name axes whole_numbers
    Statement     := number text indices blocks target reads words cost where adjoints
    Adjoint       := number text indices blocks target forward read rule patterns words cost raw
    BackwardLine  := text adjoint
    Cost          := operations elements operation_count element_count

Statements and adjoint statements have numbers, from 1 on, which link them. `as_json` gives dicts, lists, texts and
numbers only. Nothing here prints: terminal.py, latex.py and page.py do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import DerivativeError, Span
from ..language import ir, render
from ..language.counting import Formula, axis_name, operations, shown
from ..language.sizes import infer
from ..patterns import Flow, flows_of
from ..rules.activity import check_of, check_wrt, default_wrt, integer_uses
from ..rules.adjoint import derive
from ..rules.unnest import unnest
from . import words


@dataclass(frozen=True)
class Tensor:
    """An input or output: the index along each axis, as the program names it."""

    name: str
    axes: tuple[str, ...]
    whole_numbers: bool

    def __str__(self) -> str:
        return f"{self.name}[{','.join(self.axes)}]" if self.axes else self.name


@dataclass(frozen=True)
class Cost:
    """Operations and elements touched, as formulas in the sizes of indices; as numbers where all sizes are known."""

    operations: str
    elements: str
    operation_count: int | None
    element_count: int | None

    def __str__(self) -> str:
        told = f"{self.operations} operations"
        if self.operation_count is None or self.operations == str(self.operation_count):
            return told
        return f"{told}: {self.operation_count:,}"


@dataclass(frozen=True)
class Where:
    """The place of a statement in the source text: offsets, and line and column from 1 on."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True)
class Statement:
    """A statement of the program. `blocks` are the `for` lines around it; `adjoints` numbers of what it gave."""

    number: int
    text: str
    indices: tuple[str, ...]
    blocks: tuple[str, ...]
    target: str
    reads: tuple[str, ...]
    words: str
    cost: Cost
    where: Where | None
    adjoints: tuple[int, ...]

    @property
    def loop(self) -> str:
        """`for i, j, k`: the loop that the statement stands for, as textbooks write it."""
        return loop_head(self.indices)


@dataclass(frozen=True)
class Adjoint:
    """An adjoint statement: `forward` is the number of the statement that it comes from, `read` the access that gets
    the gradient, `rule` and `patterns` the names of what happened, `words` the same in sentences, and `raw` the
    statement before it was solved for its places."""

    number: int
    text: str
    indices: tuple[str, ...]
    blocks: tuple[str, ...]
    target: str
    forward: int
    read: str
    rule: str
    patterns: tuple[str, ...]
    words: tuple[str, ...]
    cost: Cost
    raw: str

    @property
    def loop(self) -> str:
        return loop_head(self.indices)


@dataclass(frozen=True)
class BackwardLine:
    """A line of the adjoint program as it runs, after what it shares was taken out. `adjoint` is the number of the
    adjoint statement that it is; none for sizes, forward statements that are run again, and values that are shared."""

    text: str
    adjoint: int | None


@dataclass(frozen=True)
class Explanation:
    """What `tensorswap explain`, notebooks and the playground show."""

    text: str
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    wrt: tuple[str, ...]
    of: tuple[str, ...]
    sizes: dict[str, str]  # of each index: the formula that it follows from, `size(A, 0)`
    numbers: dict[str, int]  # sizes as they were given
    statements: tuple[Statement, ...]
    adjoints: tuple[Adjoint, ...]
    backward: tuple[BackwardLine, ...]
    refused: str  # why there is no derivative, if there is none
    forward_cost: Cost
    backward_cost: Cost

    def as_json(self) -> dict[str, Any]:
        """Dicts, lists, texts and numbers."""
        made: dict[str, Any] = _plain(self)
        for item in (*made["statements"], *made["adjoints"]):
            item["loop"] = loop_head(item["indices"])
        return made


def loop_head(indices: Sequence[str]) -> str:
    return f"for {', '.join(indices)}" if indices else ""


def explanation(
    loops: ir.Loops,
    wrt: Sequence[str] | None = None,
    of: Sequence[str] | None = None,
    sizes: Mapping[str, int] | None = None,
    source: str | None = None,
) -> Explanation:
    """Explains a program: by all inputs that have a derivative, of all outputs, unless they are named. `sizes` are
    numbers for indices. `source` is the text that was parsed: statements that stand in it get their place."""
    numbers = {name: int(size) for name, size in (sizes or {}).items()}
    forward = unnest(loops)  # as the rules see it: expressions of very many levels are taken in steps
    by = default_wrt(forward, of) if wrt is None else check_wrt(forward, wrt)
    outputs = check_of(forward, of) if by or of is not None else forward.outputs
    flows, derived, refused = _derived(forward, by, outputs)
    adjoints = tuple(_adjoint(number, flow, forward, numbers) for number, flow in enumerate(flows, 1))
    statements = tuple(
        _statement(number, statement, blocks, adjoints, numbers, source)
        for number, (statement, blocks) in enumerate(forward.located, 1)
    )
    integers = integer_uses(forward)
    return Explanation(
        text=render.program(loops),
        name="" if loops.header is None else loops.header.name,
        inputs=tuple(_tensor(name, forward, integers) for name in loops.inputs),
        outputs=tuple(_tensor(name, forward, integers) for name in loops.outputs),
        wrt=by,
        of=outputs,
        sizes={name: render.expression(formula) for name, formula in infer(forward).index.items()},
        numbers=numbers,
        statements=statements,
        adjoints=adjoints,
        backward=() if derived is None else tuple(_lines(derived, adjoints)),
        refused=refused,
        forward_cost=_cost(forward.statements, numbers),
        backward_cost=_cost([flow.note.adjoint for flow in flows], numbers),
    )


def _derived(loops: ir.Loops, wrt: tuple[str, ...], of: tuple[str, ...]) -> tuple[list[Flow], ir.Loops | None, str]:
    """The adjoint statements with their patterns, and the adjoint program; or the reason why there is none."""
    if not wrt:
        return [], None, "no input has a derivative here"
    try:
        derived, notes = derive(loops, wrt, of)
    except DerivativeError as error:
        return [], None, f"the derivative is refused: {error}"
    return flows_of(loops, notes, wrt, of), derived, ""


def _statement(
    number: int,
    statement: ir.Statement,
    blocks: tuple[ir.Block, ...],
    adjoints: Sequence[Adjoint],
    numbers: Mapping[str, int],
    source: str | None,
) -> Statement:
    return Statement(
        number=number,
        text=render.statement(statement),
        indices=_without_blocks(statement.indices, blocks),
        blocks=tuple(_block(block.index, block.down) for block in blocks),
        target=statement.target.tensor,
        reads=tuple(dict.fromkeys(access.tensor for access in statement.reads)),
        words=words.of_statement(statement),
        cost=_cost([statement], numbers),
        where=_where(statement.span, source),
        adjoints=tuple(adjoint.number for adjoint in adjoints if adjoint.forward == number),
    )


def _adjoint(number: int, flow: Flow, forward: ir.Loops, numbers: Mapping[str, int]) -> Adjoint:
    note = flow.note
    place = next(k for k, statement in enumerate(forward.statements) if statement is note.forward)
    blocks = forward.located[place][1]
    return Adjoint(
        number=number,
        text=render.statement(note.adjoint),
        indices=_without_blocks(note.adjoint.indices, blocks),
        blocks=tuple(_block(block.index, not block.down) for block in blocks),
        target=note.adjoint.target.tensor,
        forward=place + 1,
        read=render.access(flow.access),
        rule=note.rule,
        patterns=flow.patterns,
        words=words.of_flow(flow, backwards=bool(blocks)),
        cost=_cost([note.adjoint], numbers),
        raw=render.statement(note.raw),
    )


def _without_blocks(indices: tuple[str, ...], blocks: tuple[ir.Block, ...]) -> tuple[str, ...]:
    around = {block.index for block in blocks}
    return tuple(index for index in indices if index not in around)


def _block(index: str, down: bool) -> str:
    return f"for {index}{' down' if down else ''}:"


def _where(span: Span | None, source: str | None) -> Where | None:
    """The place in the text that was parsed, if the statement stands there and not in a definition of the library."""
    if span is None or source is None or span.text.removesuffix("\n") != source.removesuffix("\n"):
        return None
    return Where(span.start, span.end, span.line, span.column)


def _tensor(name: str, loops: ir.Loops, integers: Mapping[str, ir.Access]) -> Tensor:
    """With the index along each axis, by the first access that names it."""
    accesses = [access for access in loops.accesses if access.tensor == name]
    shown_best = max(accesses, key=lambda access: sum(map(bool, map(ir.bare, access.indices))), default=None)
    axes = () if shown_best is None else tuple(axis_name(shown_best, k) for k in range(len(shown_best.indices)))
    return Tensor(name, axes, name in integers)


def _cost(statements: Sequence[ir.Statement], numbers: Mapping[str, int]) -> Cost:
    """Of loops as they stand: a plan may save much of it."""
    work: Formula = Counter()
    moved: Formula = Counter()
    for statement in statements:
        work[statement.indices] += operations(statement)
        for access in {access.tensor: access for access in (statement.target, *statement.reads)}.values():
            moved[tuple(axis_name(access, axis) for axis in range(len(access.indices)))] += 1
    return Cost(shown(work), shown(moved), _count(work, numbers), _count(moved, numbers))


def _count(terms: Formula, numbers: Mapping[str, int]) -> int | None:
    if any(name not in numbers for names in terms for name in names):
        return None
    return sum(count * math.prod(numbers[name] for name in names) for names, count in terms.items())


def _lines(derived: ir.Loops, adjoints: Sequence[Adjoint]) -> list[BackwardLine]:
    """Each line of the adjoint program; those that say the same as an adjoint statement are that one."""
    left = list(adjoints)
    found: list[BackwardLine] = []
    for line in render.program(derived).splitlines():
        same = next((adjoint for adjoint in left if adjoint.text == line.strip()), None)
        if same is not None:
            left.remove(same)
        found.append(BackwardLine(line, None if same is None else same.number))
    return found


def _plain(value: Any) -> Any:
    """Dataclasses as dicts, tuples as lists."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return {key: _plain(item) for key, item in vars(value).items()}  # one of the dataclasses above
