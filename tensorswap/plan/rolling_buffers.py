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

Others may add to a new slice. One that begins as the old one is that:

for t down:
    G[t,i] += G[t+1,i]
    G[t,i] += a[i] * Y[t,i]
->  for t down:
        G[0,i] += a[i] * Y[t,i]

The last step may leave its slice out, as in most derivatives of recurrences:

for t:
    g[t] += G[t,i]
    G[t+1,i] += a[i] * G[t,i] if t < size(t) - 1
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
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..language import ir
from ..language.bounds import numbers
from ..language.ir import Expr, Number
from .step_slices import Slices, accesses_in, along, maker, offset, own_index
from .work import Draft, Work, is_contraction, spanning, statements_in

SMALL = 8  # numbers of a slice that zeros are written to in each step


def roll_buffers(work: Work) -> Work:
    """Folds tensors that nobody but the program itself reads."""
    while found := _next(work):
        work = _folded(work, found)
    return work


def _next(work: Work) -> list[Slices]:
    """All of the first block that has any, the inner ones first."""
    kept = {*work.loops.inputs, *work.loops.outputs}
    count = Counter(access.tensor for s in work.loops.statements for access in (s.target, *s.reads))
    asked = _asked(work)
    for block, scope, around in _blocks(work.loops.body, ()):
        nested = bool(around) or any(isinstance(item, ir.Block) for item in block.body)
        indices = tuple(outer.index for outer in around)
        folds: list[Slices] = []
        for name in dict.fromkeys(s.target.tensor for s in statements_in(block)):
            if name in kept or not _is_apart(name, around, count[name]):
                continue
            found = along(work, block, scope, indices, name)
            if found is None or {(name, found.axis), (name, None)} & asked or _counts_steps(found):
                continue
            if _can_fold(work, found):
                folds.append(found)
            elif _can_empty(work, found):
                emptied = replace(found, emptied=True)
                if nested or _is_small(work, found) or _first_writers(work, emptied):
                    folds.append(emptied)
        if folds:
            return folds
    return []


def _is_small(work: Work, fold: Slices) -> bool:
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
    accesses = list(accesses_in(around[-1], name))
    return len(accesses) == count and all(
        any(own_index(accesses, axis) == b.index for axis in range(len(accesses[0].indices))) for b in around
    )


def _counts_steps(fold: Slices) -> bool:
    """Whether the place of a winner among what is read tells the step, which the places of a few slices do not."""
    arguments = (s for s in fold.statements if s.operator.startswith("arg"))
    return any(fold.tensor in ir.tensors_read(s) and fold.block.index in ir.candidates(s) for s in arguments)


def _can_fold(work: Work, fold: Slices) -> bool:
    """Whether one statement makes each slice, all of it, before it is read, and nobody asks for older ones."""
    size, extent = work.sizes.index[fold.block.index], work.sizes.shapes[fold.tensor][fold.axis]
    writer = maker(work, fold)
    if writer is None or size < fold.slices or extent <= fold.slices:
        return False
    if not any(item is writer for item in fold.block.body):
        return False
    if not _newest_behind(work, fold, writer):
        return False
    if fold.unwritten and any(offset(work, p, fold.block.index) == fold.newest for p in _places_read(fold)):
        return False  # of the slice that the last step does not make
    if fold.slices > 1 and any(map(partial(_is_tiled, fold), fold.statements)):
        return False  # register tiles need places that are sums of indices
    return _writes_whole_slice(work, writer, fold) and _meets_what_is_kept(work, fold, size)


def _is_tiled(fold: Slices, statement: ir.Statement) -> bool:
    """Whether it is a sum of products within a step."""
    return is_contraction(statement) and not {*ir.candidates(statement)} <= {fold.block.index, *fold.around}


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


def _can_empty(work: Work, fold: Slices) -> bool:
    """Whether each step has a slice for itself that begins with zeros, so that one for all can begin so each time."""
    if fold.first != fold.last or work.sizes.shapes[fold.tensor][fold.axis] < 2:
        return False
    if any(s.operator not in ("=", "+=", "-=") for s in fold.writers):
        return False
    if any(item is not fold.block and any(accesses_in(item, fold.tensor)) for item in fold.scope):
        return False
    return work.kinds[fold.tensor].dtype.kind != "b" or bool(_first_writers(work, fold))  # no zero is a truth


def _first_writers(work: Work, fold: Slices) -> list[ir.Statement]:
    """Statements that together write all of a slice, each element once, before anything else touches it."""
    whole = _begins(work, fold)
    return [whole] if whole is not None else _begin_parts(work, fold)


def _begin_parts(work: Work, fold: Slices) -> list[ir.Statement]:
    """The same by parts, `G[t,0] += ...` and `G[t,1] += ...`; none if that is not so."""
    shape = work.sizes.shapes[fold.tensor]
    own = [k for k, size in enumerate(shape) if k != fold.axis and size > 1 and k not in fold.apart]
    found: dict[int, ir.Statement] = {}
    for item in fold.block.body:
        if len(own) != 1 or len(found) == shape[own[0]] or not any(accesses_in(item, fold.tensor)):
            continue
        if not isinstance(item, ir.Statement) or item.guard is not None or fold.tensor in ir.tensors_read(item):
            return []
        place = item.target.indices[own[0]]
        if not isinstance(place, Number) or place.value in found or ir.candidates(item):
            return []
        found[int(place.value)] = item
    return list(found.values()) if own and len(found) == shape[own[0]] else []


def _begins(work: Work, fold: Slices) -> ir.Statement | None:
    """The statement that writes all of a slice, each element once, before anything else touches it."""
    item = next(item for item in fold.block.body if any(accesses_in(item, fold.tensor)))
    located = [(s, b) for s, b in ir.Loops(body=(item,)).located if any(accesses_in(s, fold.tensor))]
    (first, blocks), others = located[0], located[1:]
    if first.target.tensor != fold.tensor or first.guard is not None or fold.tensor in ir.tensors_read(first):
        return None
    names = spanning(first.target, work.sizes, {fold.axis, *fold.apart})
    if names is None or {*names} & {fold.block.index, *fold.around}:
        return None
    inner = {block.index for block in blocks}
    if not {*first.indices} <= {*names, *inner, fold.block.index, *fold.around}:
        return None  # a sum
    if not inner & {*names}:  # the whole slice in each of their steps
        again = first.operator == "=" and all(work.sizes.index[index] > 0 for index in inner)
        return first if again or not inner else None
    same = all(access == first.target for s, _ in others for access in accesses_in(s, fold.tensor))
    return first if same and inner <= {*names} else None


def _meets_what_is_kept(work: Work, fold: Slices, size: int) -> bool:
    """Whether other statements touch only what the first step finds, or what the last one leaves."""
    start, end = (size - 1, fold.unwritten) if fold.block.down else (0, size - 1 - fold.unwritten)
    touched = range(fold.first, fold.last + 1)
    allowed = {start + offset for offset in touched if offset != fold.newest}
    for item in fold.scope:
        if item is fold.block:
            allowed = {end + fold.newest} if fold.in_place else {end + offset for offset in touched}
            continue
        places = [numbers(access.indices[fold.axis], work.sizes) for access in accesses_in(item, fold.tensor)]
        if not all(isinstance(place, Number) and place.value in allowed for place in places):
            return False
    return True


def _newest_behind(work: Work, fold: Slices, writer: ir.Statement) -> bool:
    """Whether nothing reads the newest slice before its writer has made it: it would find an old one there."""
    early = fold.statements[: 1 + next(k for k, s in enumerate(fold.statements) if s is writer)]
    return all(offset(work, place, fold.block.index) != fold.newest for place in _places_read(fold, early))


def _places_read(fold: Slices, statements: Sequence[ir.Statement] | None = None) -> Iterator[Expr]:
    """On the axis, by the statements of a step, or by some of them."""
    read = (a for s in (fold.statements if statements is None else statements) for a in s.reads)
    return (access.indices[fold.axis] for access in read if access.tensor == fold.tensor)


def _writes_whole_slice(work: Work, statement: ir.Statement, fold: Slices) -> bool:
    """Whether each step writes every element of its slice, once."""
    names = spanning(statement.target, work.sizes, {fold.axis})
    if statement.guard is not None and not fold.unwritten:
        return False
    if names is None or fold.block.index in names:
        return False
    if any(i not in names for i in ir.candidates(statement) if i not in ir.index_names(statement.target)):
        return False
    return statement.operator == "=" or statement.operator == "+="


def _folded(work: Work, folds: list[Slices]) -> Work:
    """The program with places modulo the slices, for tensors of one block. In it a slice holds the values of an older
    step, so that its writer stores."""
    draft = Draft(work)
    block = folds[0].block
    of = {fold.tensor: fold for fold in folds}
    begins = {fold.tensor: _first_writers(work, fold) if fold.emptied else fold.writers[:1] for fold in folds}
    zeros = [_zeros(draft, fold) for fold in folds if not begins[fold.tensor]]

    def change(node: Expr) -> Expr:
        if not isinstance(node, ir.Access) or node.tensor not in of:
            return node
        fold = of[node.tensor]
        places = (place_in(e, fold) if k == fold.axis else e for k, e in enumerate(node.indices))
        return replace(node, indices=tuple(places))

    def place_in(place: Expr, fold: Slices) -> Expr:
        constant = numbers(place, work.sizes)
        if isinstance(constant, Number) or (fold.slices == 1 and not fold.in_place):
            return Number(int(constant.value) % fold.slices if isinstance(constant, Number) else 0)
        return ir.Binary("%", place, Number(fold.slices))

    def changed(statement: ir.Statement, _: tuple[ir.Block, ...]) -> list[ir.Item]:
        made = ir.map_statement(statement, change)
        if not any(s is statement for s in begins.get(statement.target.tensor, ())):
            return [made]
        return [] if _goes_on_as_it_is(statement, of[statement.target.tensor]) else [_stored(made)]

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


def _goes_on_as_it_is(statement: ir.Statement, fold: Slices) -> bool:
    """Whether a new slice begins as the old one, in whose place it stands: there, each element reads its own alone."""
    if not fold.in_place or statement.operator == "-=" or statement.guard is not None:
        return False
    if not isinstance(statement.value, ir.Access) or statement.value.tensor != fold.tensor:
        return False
    writers = (s for item in fold.scope for s in statements_in(item) if s.target.tensor == fold.tensor)
    return sum(1 for _ in writers) > 1  # nothing else would make the tensor


def _stored(statement: ir.Statement) -> ir.Statement:
    """What is added to zeros, stored."""
    value = ir.Binary("-", Number(0), statement.value) if statement.operator == "-=" else statement.value
    return replace(statement, operator="=", value=value)


def _zeros(draft: Draft, fold: Slices) -> ir.Statement:
    places = [
        Number(0) if axis == fold.axis or size == 1
        else ir.Index(fold.apart[axis]) if axis in fold.apart
        else draft.index("place", size)
        for axis, size in enumerate(draft.sizes.shapes[fold.tensor])
    ]  # fmt: skip
    return ir.Statement(ir.Access(fold.tensor, tuple(places)), "=", Number(0))
