"""Rolling buffers: a recurrence that looks back only a few steps keeps only as many.

U[0,i] = u[i]
for t:
    U[t+1,i] = f(U[t,i])
Y[i] = U[size(t),i]
->  U has two slices instead of size(t) + 1, and U[t+1,i] is U[(t+1) % 2,i]

for t:
    G[t,i] = f(X[t,i]);  Y[t,i] = G[t,i] * X[t,i]
->  G has one slice: G[0,i]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..language import ir
from ..language.affine import affine
from ..language.bounds import numbers
from ..language.ir import Expr, Number
from .work import Work, product_of, statements_in


@dataclass(frozen=True)
class _Fold:
    tensor: str
    axis: int
    slices: int


def roll_buffers(work: Work) -> None:
    """Folds tensors that nobody but the program itself reads."""
    while (found := _next(work)) is not None:
        _apply(work, found)


def _next(work: Work) -> _Fold | None:
    for item in work.loops.body:
        if not isinstance(item, ir.Block) or any(isinstance(inner, ir.Block) for inner in item.body):
            continue
        for name in dict.fromkeys(s.target.tensor for s in _statements(item)):
            found = None if name in work.kept else _folded(work, item, name)
            if found is not None:
                return found
    return None


def _statements(block: ir.Block) -> list[ir.Statement]:
    return [s for s in block.body if isinstance(s, ir.Statement)]


def _folded(work: Work, block: ir.Block, name: str) -> _Fold | None:
    inside = _statements(block)
    accesses = [a for s in inside for a in (s.target, *s.reads) if a.tensor == name]
    for axis in range(len(accesses[0].indices)):
        offsets = [_offset(work, a.indices[axis], block.index) for a in accesses]
        known = [offset for offset in offsets if offset is not None]
        if len(known) == len(offsets):
            break
    else:
        return None
    if ir.AxisSize(name, axis) in {n for s in work.loops.statements for n in s.nodes if isinstance(n, ir.AxisSize)}:
        return None
    writers = [s for s in inside if s.target.tensor == name]
    first, last = min(known), max(known)
    newest = first if block.down else last
    if len(writers) != 1 or _offset(work, writers[0].target.indices[axis], block.index) != newest:
        return None
    slices = last - first + 1
    if (slices > 1 and any(_is_contraction(s) for s in inside)) or not _writes_whole_slice(work, writers[0], axis):
        return None
    if slices == 1 and not _made_before_read(work, inside, writers[0]):
        return None
    size = work.sizes.index[block.index]
    before, after = (size - 1 + first + 1, first) if block.down else (first, size - 1 + last)
    earlier = True
    for item in work.loops.body:
        if item is block:
            earlier = False
            continue
        for access in (a for s in statements_in(item) for a in (s.target, *s.reads) if a.tensor == name):
            place = numbers(access.indices[axis], work.sizes)
            if not isinstance(place, Number):
                return None
            low = before if earlier else after - (0 if block.down else slices - 1)
            high = low + (slices - 2 if earlier else slices - 1)
            if not low <= place.value <= high:
                return None
    if size < slices or work.sizes.shapes[name][axis] <= slices:
        return None
    return _Fold(name, axis, slices)


def _made_before_read(work: Work, inside: list[ir.Statement], writer: ir.Statement) -> bool:
    """Whether a tensor is read in the step that makes it only, and behind its statement."""
    name = writer.target.tensor
    reading = [s for s in work.loops.statements if any(a.tensor == name for a in s.reads)]
    behind = inside[inside.index(writer) + 1 :]
    return all(any(s is other for other in behind) for s in reading)


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


def _writes_whole_slice(work: Work, statement: ir.Statement, axis: int) -> bool:
    """Whether each step writes every element of its slice, once."""
    names = [ir.bare(e) for k, e in enumerate(statement.target.indices) if k != axis]
    shape = [n for k, n in enumerate(work.sizes.shapes[statement.target.tensor]) if k != axis]
    if statement.guard is not None or None in names or len(set(names)) < len(names):
        return False
    if any(i not in names for i in ir.candidates(statement) if i not in ir.index_names(statement.target)):
        return False
    whole = all(work.sizes.index[name or ""] == size for name, size in zip(names, shape, strict=True))
    return whole and (statement.operator == "=" or statement.operator == "+=")


def _apply(work: Work, found: _Fold) -> None:
    def change(node: Expr) -> Expr:
        if not isinstance(node, ir.Access) or node.tensor != found.tensor:
            return node
        place = node.indices[found.axis]
        constant = numbers(place, work.sizes)
        folded: Expr = ir.Binary("%", place, Number(found.slices))
        if isinstance(constant, Number) or found.slices == 1:
            folded = Number(int(constant.value) % found.slices if isinstance(constant, Number) else 0)
        places = [folded if k == found.axis else e for k, e in enumerate(node.indices)]
        return replace(node, indices=tuple(places))

    def visit(body: tuple[ir.Item, ...], inside: bool) -> tuple[ir.Item, ...]:
        result: list[ir.Item] = []
        for item in body:
            if isinstance(item, ir.Block):
                result.append(replace(item, body=visit(item.body, True)))
                continue
            assert isinstance(item, ir.Statement)
            made = ir.map_statement(item, change)
            if inside and item.target.tensor == found.tensor:
                made = replace(made, operator="=")  # the slice holds the values of an older step
            result.append(made)
        return tuple(result)

    work.loops = replace(work.loops, body=visit(work.loops.body, False))
    shape = list(work.sizes.shapes[found.tensor])
    shape[found.axis] = found.slices
    work.sizes.shapes[found.tensor] = tuple(shape)
