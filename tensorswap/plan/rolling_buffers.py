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
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..language import ir
from ..language.affine import affine
from ..language.bounds import numbers
from ..language.ir import Expr, Number
from .work import Work, product_of, statements_in


@dataclass(frozen=True)
class _Fold:
    """A tensor with an axis along which a block takes its steps: a step touches places from its own plus `first` to its
    own plus `last`."""

    block: ir.Block
    tensor: str
    axis: int
    first: int
    last: int
    in_place: bool = False  # a new slice replaces the old one, element by element

    @property
    def slices(self) -> int:
        return 1 if self.in_place else self.last - self.first + 1

    @property
    def newest(self) -> int:
        """The place that no step before has touched."""
        return self.first if self.block.down else self.last

    @property
    def statements(self) -> list[ir.Statement]:
        return [s for s in self.block.body if isinstance(s, ir.Statement)]


def roll_buffers(work: Work) -> Work:
    """Folds tensors that nobody but the program itself reads."""
    while (found := _next(work)) is not None:
        work = _folded(work, found)
    return work


def _next(work: Work) -> _Fold | None:
    kept = {*work.loops.inputs, *work.loops.outputs}
    for item in work.loops.body:
        if isinstance(item, ir.Block) and not any(isinstance(inner, ir.Block) for inner in item.body):
            for name in dict.fromkeys(s.target.tensor for s in statements_in(item)):
                found = None if name in kept else _along(work, item, name)
                if found is not None and _can_fold(work, found):
                    return found
    return None


def _along(work: Work, block: ir.Block, name: str) -> _Fold | None:
    """The first axis on which every place is the step plus a number."""
    accesses = list(_accesses(block, name))
    for axis in range(len(accesses[0].indices)):
        offsets = [_offset(work, a.indices[axis], block.index) for a in accesses]
        known = [offset for offset in offsets if offset is not None]
        if len(known) == len(offsets):
            found = _Fold(block, name, axis, min(known), max(known))
            return replace(found, in_place=_replaces(work, found))
    return None


def _replaces(work: Work, fold: _Fold) -> bool:
    """Whether nothing reads an element of the old slice after the one of the new slice that takes its place."""
    writers = [s for s in fold.statements if s.target.tensor == fold.tensor]
    if fold.last - fold.first != 1 or len(writers) != 1:
        return False
    (writer,) = writers
    own = [e for k, e in enumerate(writer.target.indices) if k != fold.axis]
    if not {*writer.indices} <= {fold.block.index, *(ir.bare(e) for e in own)}:
        return False  # a sum reads the old element at each of its points
    behind = False
    for statement in fold.statements:
        for access in (a for a in statement.reads if a.tensor == fold.tensor):
            if _offset(work, access.indices[fold.axis], fold.block.index) == fold.newest:
                continue
            if behind or [e for k, e in enumerate(access.indices) if k != fold.axis] != own:
                return False
        behind = behind or statement is writer
    return True


def _accesses(item: ir.Item, name: str) -> Iterator[ir.Access]:
    return (a for s in statements_in(item) for a in (s.target, *s.reads) if a.tensor == name)


def _can_fold(work: Work, fold: _Fold) -> bool:
    """Whether one statement writes each slice whole, once, before it is read, and nobody asks for older ones."""
    writers = [s for s in fold.statements if s.target.tensor == fold.tensor]
    size, extent = work.sizes.index[fold.block.index], work.sizes.shapes[fold.tensor][fold.axis]
    if len(writers) != 1 or size < fold.slices or extent <= fold.slices:
        return False
    (writer,) = writers
    if _offset(work, writer.target.indices[fold.axis], fold.block.index) != fold.newest:
        return False
    if not _newest_behind(work, fold, writer):
        return False
    if fold.slices > 1 and any(_is_contraction(s) for s in fold.statements):
        return False
    axes = fold.axis, fold.axis - len(work.sizes.shapes[fold.tensor])  # from either end
    asked = any(
        any(isinstance(n, ir.AxisSize) and n.tensor == fold.tensor and n.axis in axes for n in s.nodes)
        or (ir.Inside() in s.nodes and fold.tensor in ir.tensors_read(s))
        for s in work.loops.statements
    )
    return not asked and _writes_whole_slice(work, writer, fold) and _meets_what_is_kept(work, fold, size)


def _meets_what_is_kept(work: Work, fold: _Fold, size: int) -> bool:
    """Whether other statements touch only what the first step finds, or what the last one leaves."""
    start, end = (size - 1, 0) if fold.block.down else (0, size - 1)
    touched = range(fold.first, fold.last + 1)
    allowed = {start + offset for offset in touched if offset != fold.newest}
    for item in work.loops.body:
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
    places = (a.indices[fold.axis] for s in early for a in s.reads if a.tensor == fold.tensor)
    return all(_offset(work, place, fold.block.index) != fold.newest for place in places)


def _offset(work: Work, place: Expr, index: str) -> int | None:
    """c, if a place is the index plus c."""
    form = affine(numbers(place, work.sizes))
    if form is None or form.terms != {index: Number(1)} or not isinstance(form.constant, Number):
        return None
    return int(form.constant.value)


def _is_contraction(statement: ir.Statement) -> bool:
    """Register tiles need places that are sums of indices."""
    over, _ = product_of(statement.value)
    return statement.operator in ir.SUM and bool(ir.candidates(statement)) and len(over) > 1


def _writes_whole_slice(work: Work, statement: ir.Statement, fold: _Fold) -> bool:
    """Whether each step writes every element of its slice, once."""
    names = [ir.bare(e) for k, e in enumerate(statement.target.indices) if k != fold.axis]
    shape = [n for k, n in enumerate(work.sizes.shapes[statement.target.tensor]) if k != fold.axis]
    if statement.guard is not None or None in names or len(set(names)) < len(names) or fold.block.index in names:
        return False
    if any(i not in names for i in ir.candidates(statement) if i not in ir.index_names(statement.target)):
        return False
    whole = all(work.sizes.index[name or ""] == size for name, size in zip(names, shape, strict=True))
    return whole and (statement.operator == "=" or statement.operator == "+=")


def _folded(work: Work, fold: _Fold) -> Work:
    """The program with places modulo the slices. In the block a slice holds the values of an older step, so that its
    writer stores."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, ir.Access) or node.tensor != fold.tensor:
            return node
        return replace(node, indices=tuple(place_in(e, k) for k, e in enumerate(node.indices)))

    def place_in(place: Expr, axis: int) -> Expr:
        if axis != fold.axis:
            return place
        constant = numbers(place, work.sizes)
        if isinstance(constant, Number) or (fold.slices == 1 and not fold.in_place):
            return Number(int(constant.value) % fold.slices if isinstance(constant, Number) else 0)
        return ir.Binary("%", place, Number(fold.slices))

    def changed(statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
        stores = blocks and statement.target.tensor == fold.tensor
        return [replace(ir.map_statement(statement, change), operator="=" if stores else statement.operator)]

    shape = list(work.sizes.shapes[fold.tensor])
    shape[fold.axis] = fold.slices
    sizes = replace(work.sizes, shapes={**work.sizes.shapes, fold.tensor: tuple(shape)})
    return replace(work.each(changed), sizes=sizes)
