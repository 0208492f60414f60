"""Rolling buffers: a recurrence that looks back only a few steps keeps only as many.

U[0,i] = u[i]
for t:
    U[t+1,i] = f(U[t,i])
Y[i] = U[size(t),i]
->  U has one slice instead of size(t) + 1, and U[t+1,i] is U[(t+1) % 1,i]: a new element takes the place of the old.
    There would be two, and U[(t+1) % 2,i], if a step read more of the old slice than the element that it writes.

for t:
    G[t,i] = f(X[t,i]);  Y[t,i] = G[t,i] * X[t,i]
->  G has one slice: G[0,i]

The last step may leave its slice out, and who reads the old slice does so before the new one replaces it, as in most
derivatives of recurrences:

for t:
    G[t+1,i] += a[i] * G[t,i] if t < size(t) - 1
    g[t] += G[t,i]
->  for t:
        g[t] += G[0,i]
        G[0,i] = a[i] * G[0,i] if t < size(t) - 1

A block within a block rolls what each step of the outer one has for itself, and then the outer one what is left:

for t:
    P[t,0] = x[t]
    for s:
        P[t,s+1] = f(P[t,s])
    Y[t] = P[t,size(s)]
->  P has one element, P[0,0]
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..language import ir
from ..language.affine import affine
from ..language.bounds import numbers
from ..language.ir import Expr, Number
from .work import Draft, Work, is_contraction, statements_in

SMALL = 8  # numbers of a slice that zeros are written to in each step
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class _Fold:
    """A tensor with an axis along which a block takes its steps: a step touches places from its own plus `first` to its
    own plus `last`."""

    block: ir.Block
    scope: tuple[ir.Item, ...]  # what the block stands in: the program, or the block around it
    around: tuple[str, ...]  # the indices of the blocks around it
    tensor: str
    axis: int
    first: int
    last: int
    in_place: bool = False  # a new slice replaces the old one, element by element
    emptied: bool = False  # a step begins with zeros, as it would in a slice of its own
    unwritten: int = 0  # steps at the end that make no new slice

    @property
    def slices(self) -> int:
        return 1 if self.in_place else self.last - self.first + 1

    @property
    def newest(self) -> int:
        """The place that no step before has touched."""
        return self.first if self.block.down else self.last

    @property
    def statements(self) -> list[ir.Statement]:
        """Of a step, those of the blocks within it too."""
        return statements_in(self.block)

    @property
    def apart(self) -> dict[int, str]:
        """Axes on which each step of a block around has its own place, and the index of that block."""
        accesses = list(_accesses(self.block, self.tensor))
        owns = {axis: _own(accesses, axis) for axis in range(len(accesses[0].indices))}
        return {axis: own for axis, own in owns.items() if own is not None and own in self.around}

    @property
    def writers(self) -> list[ir.Statement]:
        return [s for s in self.statements if s.target.tensor == self.tensor]


def roll_buffers(work: Work) -> Work:
    """Folds tensors that nobody but the program itself reads."""
    work = _readers_first(work)
    while found := _next(work):
        work = _folded(work, found)
    return work


def _next(work: Work) -> list[_Fold]:
    """All of the first block that has any, the inner ones first."""
    kept = {*work.loops.inputs, *work.loops.outputs}
    count = Counter(access.tensor for s in work.loops.statements for access in (s.target, *s.reads))
    asked = _asked(work)
    for block, scope, around in _blocks(work.loops.body, ()):
        nested = bool(around) or any(isinstance(item, ir.Block) for item in block.body)
        indices = tuple(outer.index for outer in around)
        folds: list[_Fold] = []
        for name in dict.fromkeys(s.target.tensor for s in statements_in(block)):
            if name in kept or not _is_apart(name, around, count[name]):
                continue
            found = _along(work, block, scope, indices, name)
            if found is None or {(name, found.axis), (name, None)} & asked or _counts_steps(found):
                continue
            if _can_fold(work, found):
                folds.append(found)
            elif (nested or _is_small(work, found)) and _can_empty(work, found):
                folds.append(replace(found, emptied=True))
        if folds:
            return folds
    return []


def _is_small(work: Work, fold: _Fold) -> bool:
    """Whether zeros for a slice cost no more than to find the next one would."""
    shape = work.sizes.shapes[fold.tensor]
    return math.prod(size for axis, size in enumerate(shape) if axis != fold.axis) <= SMALL


def _blocks(
    scope: tuple[ir.Item, ...], around: tuple[ir.Block, ...]
) -> Iterator[tuple[ir.Block, tuple[ir.Item, ...], tuple[ir.Block, ...]]]:
    """Every block with what it stands in and the blocks around it, the inner ones first."""
    for item in scope:
        if isinstance(item, ir.Block):
            yield from _blocks(item.body, (*around, item))
            yield item, scope, around


def _is_apart(name: str, around: tuple[ir.Block, ...], count: int) -> bool:
    """Whether every step of the blocks around has a slice of its own, which nothing but that step touches; the program
    has so many accesses to the tensor."""
    if not around:
        return True
    accesses = list(_accesses(around[-1], name))
    return len(accesses) == count and all(
        any(_own(accesses, axis) == b.index for axis in range(len(accesses[0].indices))) for b in around
    )


def _own(accesses: list[ir.Access], axis: int) -> str | None:
    """The index that every access has as its place on an axis."""
    names = {ir.bare(access.indices[axis]) for access in accesses}
    return names.pop() if len(names) == 1 else None


def _along(work: Work, block: ir.Block, scope: tuple[ir.Item, ...], around: tuple[str, ...], name: str) -> _Fold | None:
    """The first axis on which every place is the step plus a number."""
    accesses = list(_accesses(block, name))
    for axis in range(len(accesses[0].indices)):
        offsets = [_offset(work, a.indices[axis], block.index) for a in accesses]
        known = [offset for offset in offsets if offset is not None]
        if len(known) == len(offsets):
            found = _Fold(block, scope, around, name, axis, min(known), max(known))
            return replace(found, in_place=_replaces(work, found), unwritten=_unwritten(work, found))
    return None


def _counts_steps(fold: _Fold) -> bool:
    """Whether the place of a winner among what is read tells the step, which the places of a few slices do not."""
    arguments = (s for s in fold.statements if s.operator.startswith("arg"))
    return any(fold.tensor in ir.tensors_read(s) and fold.block.index in ir.candidates(s) for s in arguments)


def _readers_first(work: Work) -> Work:
    """In each block, statements that read the old slice of a recurrence stand before the one that makes the new slice,
    where nothing in between minds."""
    moved = False

    def body(items: tuple[ir.Item, ...], scope: tuple[ir.Item, ...], block: ir.Block | None) -> Iterator[ir.Item]:
        made = [replace(i, body=tuple(body(i.body, items, i))) if isinstance(i, ir.Block) else i for i in items]
        return iter(made if block is None else in_order(made, scope, block))

    def in_order(items: list[ir.Item], scope: tuple[ir.Item, ...], block: ir.Block) -> list[ir.Item]:
        nonlocal moved
        for writer in [s for s in items if isinstance(s, ir.Statement) and s.target.tensor not in work.loops.outputs]:
            fold = _along(work, replace(block, body=tuple(items)), scope, (), writer.target.tensor)
            if fold is None or fold.last - fold.first != 1 or len(fold.writers) != 1:
                continue
            for reader in items[_position(items, writer) + 1 :]:
                first, last = _position(items, writer), _position(items, reader)
                if not isinstance(reader, ir.Statement) or not _reads_old_slice_only(work, fold, reader):
                    continue
                if not any(_minds(item, reader, fold.tensor) for item in items[first:last]):
                    items = [*items[:first], reader, *items[first:last], *items[last + 1 :]]
                    moved = True
        return items

    found = list(body(work.loops.body, (), None))
    return work.made(found) if moved else work


def _position(items: list[ir.Item], wanted: ir.Item) -> int:
    return next(k for k, item in enumerate(items) if item is wanted)


def _reads_old_slice_only(work: Work, fold: _Fold, statement: ir.Statement) -> bool:
    offsets = [_offset(work, a.indices[fold.axis], fold.block.index) for a in _accesses(statement, fold.tensor)]
    return bool(offsets) and fold.newest not in offsets


def _minds(item: ir.Item, reader: ir.Statement, rolled: str) -> bool:
    """Whether a statement that reads the old slice of a tensor cannot go before an item that makes no such slice."""
    statements = statements_in(item)
    written = {s.target.tensor for s in statements}
    return reader.target.tensor in written.union(*map(ir.tensors_read, statements)) or bool(
        {*ir.tensors_read(reader)} & written - {rolled}
    )


def _unwritten(work: Work, fold: _Fold) -> int:
    """1 if a guard leaves out what the last step would write, and nothing else."""
    guard = fold.writers[0].guard if len(fold.writers) == 1 else None
    if not isinstance(guard, ir.Compare) or guard.operator not in ORDERS:
        return 0
    form = affine(numbers(ir.Binary("-", guard.left, guard.right), work.sizes))
    if form is None or form.terms.keys() != {fold.block.index}:
        return 0
    slope, constant = form.terms[fold.block.index], form.constant
    if not isinstance(slope, Number) or not isinstance(constant, Number):
        return 0
    last = work.sizes.index[fold.block.index] - 1
    steps = [last, last - 1, 0] if not fold.block.down else [0, 1, last]
    holds = [ORDERS[guard.operator](slope.value * step + constant.value, 0) for step in steps]
    return 1 if last >= 1 and holds == [False, True, True] else 0


def _replaces(work: Work, fold: _Fold) -> bool:
    """Whether nothing reads an element of the old slice after the one of the new slice that takes its place."""
    if fold.last - fold.first != 1 or len(fold.writers) != 1:
        return False
    (writer,) = fold.writers
    own = [e for k, e in enumerate(writer.target.indices) if k != fold.axis]
    if not {*writer.indices} <= {fold.block.index, *(ir.bare(e) for e in own)}:
        return False  # a sum reads the old element at each of its points
    behind = False
    for statement in fold.statements:
        for access in (a for a in statement.reads if a.tensor == fold.tensor):
            if _offset(work, access.indices[fold.axis], fold.block.index) == fold.newest:
                continue
            elsewhere = [e for k, e in enumerate(access.indices) if k != fold.axis] != own
            if behind or (elsewhere and statement is writer):
                return False
        behind = behind or statement is writer
    return True


def _accesses(item: ir.Item, name: str) -> Iterator[ir.Access]:
    return (a for s in statements_in(item) for a in (s.target, *s.reads) if a.tensor == name)


def _can_fold(work: Work, fold: _Fold) -> bool:
    """Whether one statement writes each slice whole, once, before it is read, and nobody asks for older ones."""
    size, extent = work.sizes.index[fold.block.index], work.sizes.shapes[fold.tensor][fold.axis]
    if len(fold.writers) != 1 or size < fold.slices or extent <= fold.slices:
        return False
    (writer,) = fold.writers
    if not any(item is writer for item in fold.block.body):
        return False
    if _offset(work, writer.target.indices[fold.axis], fold.block.index) != fold.newest:
        return False
    if not _newest_behind(work, fold, writer):
        return False
    if fold.unwritten and any(_offset(work, p, fold.block.index) == fold.newest for p in _places_read(fold)):
        return False  # of the slice that the last step does not make
    if fold.slices > 1 and any(is_contraction(s) for s in fold.statements):
        return False  # register tiles need places that are sums of indices
    return _writes_whole_slice(work, writer, fold) and _meets_what_is_kept(work, fold, size)


def _asked(work: Work) -> set[tuple[str, int | None]]:
    """Tensors and the axes of which a statement asks how long they are; None is any."""
    found: set[tuple[str, int | None]] = set()
    for statement in work.loops.statements:
        for node in statement.nodes:
            if isinstance(node, ir.AxisSize):
                found.add((node.tensor, node.axis % len(work.sizes.shapes[node.tensor])))  # from either end
            elif isinstance(node, ir.Inside):
                found |= {(name, None) for name in ir.tensors_read(statement)}
    return found


def _can_empty(work: Work, fold: _Fold) -> bool:
    """Whether each step has a slice for itself that begins with zeros, so that one for all can begin so each time."""
    if fold.first != fold.last or work.sizes.shapes[fold.tensor][fold.axis] < 2:
        return False
    if any(s.operator not in ("=", "+=", "-=") for s in fold.writers):
        return False
    if any(item is not fold.block and any(_accesses(item, fold.tensor)) for item in fold.scope):
        return False
    return work.kinds[fold.tensor].dtype.kind != "b" or bool(_first_writers(work, fold))  # no zero is a truth


def _first_writers(work: Work, fold: _Fold) -> list[ir.Statement]:
    """Statements that together write all of a slice, each element once, before anything else touches it."""
    whole = _begins(work, fold)
    return [whole] if whole is not None else _begin_parts(work, fold)


def _begin_parts(work: Work, fold: _Fold) -> list[ir.Statement]:
    """The same by parts, `G[t,0] += ...` and `G[t,1] += ...`; none if that is not so."""
    shape = work.sizes.shapes[fold.tensor]
    own = [k for k, size in enumerate(shape) if k != fold.axis and size > 1 and k not in fold.apart]
    found: dict[int, ir.Statement] = {}
    for item in fold.block.body:
        if len(own) != 1 or len(found) == shape[own[0]] or not any(_accesses(item, fold.tensor)):
            continue
        if not isinstance(item, ir.Statement) or item.guard is not None or fold.tensor in ir.tensors_read(item):
            return []
        place = item.target.indices[own[0]]
        if not isinstance(place, Number) or place.value in found or ir.candidates(item):
            return []
        found[int(place.value)] = item
    return list(found.values()) if own and len(found) == shape[own[0]] else []


def _begins(work: Work, fold: _Fold) -> ir.Statement | None:
    """The statement that writes all of a slice, each element once, before anything else touches it."""
    item = next(item for item in fold.block.body if any(_accesses(item, fold.tensor)))
    located = [(s, b) for s, b in ir.Loops(body=(item,)).located if any(_accesses(s, fold.tensor))]
    (first, blocks), others = located[0], located[1:]
    if first.target.tensor != fold.tensor or first.guard is not None or fold.tensor in ir.tensors_read(first):
        return None
    names: list[str] = []
    for axis, size in enumerate(work.sizes.shapes[fold.tensor]):
        name = ir.bare(first.target.indices[axis])
        if axis == fold.axis or (size == 1 and first.target.indices[axis] == Number(0)) or axis in fold.apart:
            continue
        if name is None or name in (*names, fold.block.index, *fold.around) or work.sizes.index[name] != size:
            return None
        names.append(name)
    inner = {block.index for block in blocks}
    if not {*first.indices} <= {*names, *inner, fold.block.index, *fold.around}:
        return None  # a sum
    if not inner & {*names}:  # the whole slice in each of their steps
        again = first.operator == "=" and all(work.sizes.index[index] > 0 for index in inner)
        return first if again or not inner else None
    same = all(access == first.target for s, _ in others for access in _accesses(s, fold.tensor))
    return first if same and inner <= {*names} else None


def _meets_what_is_kept(work: Work, fold: _Fold, size: int) -> bool:
    """Whether other statements touch only what the first step finds, or what the last one leaves."""
    start, end = (size - 1, fold.unwritten) if fold.block.down else (0, size - 1 - fold.unwritten)
    touched = range(fold.first, fold.last + 1)
    allowed = {start + offset for offset in touched if offset != fold.newest}
    for item in fold.scope:
        if item is fold.block:
            allowed = {end + fold.newest} if fold.in_place else {end + offset for offset in touched}
            continue
        places = [numbers(access.indices[fold.axis], work.sizes) for access in _accesses(item, fold.tensor)]
        if not all(isinstance(place, Number) and place.value in allowed for place in places):
            return False
    return True


def _newest_behind(work: Work, fold: _Fold, writer: ir.Statement) -> bool:
    """Whether nothing reads the newest slice before its writer has made it: it would find an old one there."""
    early = fold.statements[: 1 + next(k for k, s in enumerate(fold.statements) if s is writer)]
    return all(_offset(work, place, fold.block.index) != fold.newest for place in _places_read(fold, early))


def _places_read(fold: _Fold, statements: Sequence[ir.Statement] | None = None) -> Iterator[Expr]:
    """On the axis, by the statements of a step, or by some of them."""
    read = (a for s in (fold.statements if statements is None else statements) for a in s.reads)
    return (access.indices[fold.axis] for access in read if access.tensor == fold.tensor)


def _offset(work: Work, place: Expr, index: str) -> int | None:
    """c, if a place is the index plus c."""
    form = affine(numbers(place, work.sizes))
    if form is None or form.terms != {index: Number(1)} or not isinstance(form.constant, Number):
        return None
    return int(form.constant.value)


def _writes_whole_slice(work: Work, statement: ir.Statement, fold: _Fold) -> bool:
    """Whether each step writes every element of its slice, once."""
    names = [ir.bare(e) for k, e in enumerate(statement.target.indices) if k != fold.axis]
    shape = [n for k, n in enumerate(work.sizes.shapes[statement.target.tensor]) if k != fold.axis]
    if statement.guard is not None and not fold.unwritten:
        return False
    if None in names or len(set(names)) < len(names) or fold.block.index in names:
        return False
    if any(i not in names for i in ir.candidates(statement) if i not in ir.index_names(statement.target)):
        return False
    whole = all(work.sizes.index[name or ""] == size for name, size in zip(names, shape, strict=True))
    return whole and (statement.operator == "=" or statement.operator == "+=")


def _folded(work: Work, folds: list[_Fold]) -> Work:
    """The program with places modulo the slices, for tensors of one block. In it a slice holds the values of an older
    step, so that its writer stores."""
    draft = Draft(work)
    block = folds[0].block
    of = {fold.tensor: fold for fold in folds}
    begins = {fold.tensor: _first_writers(work, fold) if fold.emptied else fold.writers for fold in folds}
    zeros = [_zeros(draft, fold) for fold in folds if not begins[fold.tensor]]

    def change(node: Expr) -> Expr:
        if not isinstance(node, ir.Access) or node.tensor not in of:
            return node
        fold = of[node.tensor]
        places = (place_in(e, fold) if k == fold.axis else e for k, e in enumerate(node.indices))
        return replace(node, indices=tuple(places))

    def place_in(place: Expr, fold: _Fold) -> Expr:
        constant = numbers(place, work.sizes)
        if isinstance(constant, Number) or (fold.slices == 1 and not fold.in_place):
            return Number(int(constant.value) % fold.slices if isinstance(constant, Number) else 0)
        return ir.Binary("%", place, Number(fold.slices))

    def changed(statement: ir.Statement, _: tuple[ir.Block, ...]) -> list[ir.Item]:
        made = ir.map_statement(statement, change)
        return [_stored(made) if any(s is statement for s in begins.get(statement.target.tensor, ())) else made]

    def body(items: tuple[ir.Item, ...]) -> Iterator[ir.Item]:
        for item in items:
            if isinstance(item, ir.Block):
                yield replace(item, body=(*(zeros if item is block else ()), *body(item.body)))
            else:
                yield from ir.rewrite((item,), changed)

    found = draft.made(body(work.loops.body))
    shapes = dict(found.sizes.shapes)
    for fold in folds:
        shapes[fold.tensor] = tuple(fold.slices if k == fold.axis else n for k, n in enumerate(shapes[fold.tensor]))
    return replace(found, sizes=replace(found.sizes, shapes=shapes))


def _stored(statement: ir.Statement) -> ir.Statement:
    """What is added to zeros, stored."""
    value = ir.Binary("-", Number(0), statement.value) if statement.operator == "-=" else statement.value
    return replace(statement, operator="=", value=value)


def _zeros(draft: Draft, fold: _Fold) -> ir.Statement:
    places = [
        Number(0) if axis == fold.axis or size == 1
        else ir.Index(fold.apart[axis]) if axis in fold.apart
        else draft.index("place", size)
        for axis, size in enumerate(draft.sizes.shapes[fold.tensor])
    ]  # fmt: skip
    return ir.Statement(ir.Access(fold.tensor, tuple(places)), "=", Number(0))
