"""Sizes: a formula for each index and each axis, read off the program once; numbers and their agreement at the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from ..errors import Fault, ShapeError, Span
from ..lazy import kept_with_program
from . import ir
from .affine import Affine, affine, greatest, tidy
from .build import WHOLE, ZERO, add, conjuncts, floor_divide, minimum, subtract
from .interval import interval
from .ir import Expr, Number
from .paths import always_read
from .render import access as show_access
from .render import expression as show

Axis = tuple[str, int]


@dataclass(frozen=True)
class SizeRules:
    """`index` and `axis` hold formulas; `missing` the indices that have none."""

    index: dict[str, Expr]
    axis: dict[Axis, Expr]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Sizes:
    """The numbers of one call."""

    index: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    statics: Mapping[str, int]

    def value(self, node: Expr) -> int:
        """The number behind an index-free integer expression."""
        return evaluate(node, self.index.__getitem__, lambda t, a: self.shapes[t][a], self.statics)


@dataclass(frozen=True)
class BareUse:
    """An index that stands bare on a tensor's axis."""

    index: str
    tensor: str
    axis: int
    span: Span | None


def bare_uses(loops: ir.Loops) -> Iterator[BareUse]:
    """Bare indices on tensors, header first. Targets count where the tensor's shape comes from elsewhere."""
    accesses = list(loops.header_accesses)
    for statement in loops.statements:
        accesses += list(statement.reads)
        if statement.target.tensor in loops.updated:
            accesses.append(statement.target)
    for access in accesses:
        for axis, place in enumerate(access.indices):
            if isinstance(place, ir.Index):
                yield BareUse(place.name, access.tensor, axis, access.span)


def bare_written(loops: ir.Loops) -> dict[Axis, str]:
    """Axes of written tensors that every writer addresses with one and the same bare index."""
    found: dict[Axis, set[str | None]] = {}
    for statement in loops.statements:
        for axis, place in enumerate(statement.target.indices):
            found.setdefault((statement.target.tensor, axis), set()).add(ir.bare(place))
    declared = {declared_axis(loops, d.subject) for d in loops.sizes if isinstance(d.subject, ir.AxisSize)}
    return {
        key: name
        for key, names in found.items()
        if len(names) == 1 and (name := next(iter(names))) is not None and key not in declared
    }


def declared_axis(loops: ir.Loops, subject: ir.AxisSize) -> Axis:
    """The axis that `size(X, -1) = ...` declares, counted from the front."""
    return subject.tensor, subject.axis + (loops.ranks.get(subject.tensor, 0) if subject.axis < 0 else 0)


@kept_with_program
def infer(loops: ir.Loops, given: frozenset[str] = frozenset()) -> SizeRules:
    """A formula for every index and axis that has one. Indices in `given` get their size at the call."""
    index: dict[str, Expr] = {name: ir.Size(name) for name in given}
    axis: dict[Axis, Expr] = {}
    for declaration in loops.sizes:
        if isinstance(declaration.subject, ir.Size):
            index.setdefault(declaration.subject.index, declaration.value)
        elif isinstance(declaration.subject, ir.AxisSize):
            axis.setdefault(declared_axis(loops, declaration.subject), declaration.value)
    inputs = frozenset(loops.inputs)
    for use in bare_uses(loops):
        if use.tensor in inputs:
            index.setdefault(use.index, ir.AxisSize(use.tensor, use.axis))
    if loops.header:
        own = {name for statement in loops.statements for name in statement.indices} | index.keys()
        for output in loops.header.outputs:
            for place, e in enumerate(output.indices):
                if isinstance(e, ir.Index) and e.name in own and output.tensor not in inputs:
                    axis.setdefault((output.tensor, place), ir.Size(e.name))
    progress = True
    while progress:
        progress = _infer_axes(loops, inputs, index, axis) | _infer_indices(loops, inputs, index, axis)
        progress = progress or _infer_bare(loops, inputs, index, axis)
    names = [i for i in loops.indices if i != ir.BATCH]
    return SizeRules(index, axis, tuple(i for i in names if i not in index))


def _infer_axes(loops: ir.Loops, inputs: frozenset[str], index: dict[str, Expr], axis: dict[Axis, Expr]) -> bool:
    """Extents of written tensors from the greatest index their writers reach."""
    sizes = {name: ir.Size(name) for name in index}
    writers: dict[str, list[ir.Statement]] = {}
    for statement in loops.statements:
        writers.setdefault(statement.target.tensor, []).append(statement)
    progress = False
    for tensor, statements in writers.items():
        if tensor in inputs:
            continue
        for place in range(len(statements[0].target.indices)):
            if (tensor, place) in axis:
                continue
            reaches = [_reach(s, place, sizes) for s in statements]
            known = [r for r in reaches if r is not None]
            if len(known) == len(reaches):
                axis[tensor, place] = reduce(greatest, dict.fromkeys(known))
                progress = True
    return progress


def _reach(statement: ir.Statement, place: int, sizes: Mapping[str, Expr]) -> Expr | None:
    """One more than the greatest index that a statement writes on an axis."""
    node = statement.target.indices[place]
    if isinstance(node, ir.Index):
        return sizes.get(node.name)
    if statement.asks_inside:
        return None  # the guard asks for the extent, so the extent cannot ask for the guard
    bounds = interval(node, sizes)
    return None if bounds is None else greatest(tidy(add(bounds[1], Number(1))), ZERO)


def _infer_indices(loops: ir.Loops, inputs: frozenset[str], index: dict[str, Expr], axis: dict[Axis, Expr]) -> bool:
    """The largest range that keeps every access in bounds, for indices that nothing else sizes."""
    bounds: dict[str, list[Expr]] = {}
    for statement in loops.statements:
        if statement.asks_inside:
            continue
        guard = conjuncts(statement.guard)
        for access in (statement.target, *always_read(*statement.target.indices, statement.value, *guard)):
            for place, node in enumerate(access.indices):
                if isinstance(node, ir.Index) and node.name in index:
                    continue
                extent: Expr | None = ir.AxisSize(access.tensor, place)
                if access.tensor not in inputs:
                    extent = axis.get((access.tensor, place))
                if extent is None:
                    continue
                unknown = [i for i in ir.index_names(node) if i not in index and i != ir.BATCH]
                if len(unknown) == 1 and ir.Size(unknown[0]) not in ir.walk(extent):
                    bound = _largest(node, unknown[0], extent, index)
                    if bound is not None:
                        bounds.setdefault(unknown[0], []).append(bound)
    for name, found in bounds.items():
        index[name] = reduce(minimum, dict.fromkeys(found))
    return bool(bounds)


def _infer_bare(loops: ir.Loops, inputs: frozenset[str], index: dict[str, Expr], axis: dict[Axis, Expr]) -> bool:
    """Where all else fails: an index that stands bare on an axis runs over all of it, in a branch or beside `inside`
    too, and an axis that is written through computed indices is as long as what reads it."""
    for use in bare_uses(loops):
        key = use.tensor, use.axis
        if use.tensor in inputs or use.index == ir.BATCH or (use.index in index) == (key in axis):
            continue
        if key not in axis:
            axis[key] = ir.Size(use.index)
        elif ir.Size(use.index) not in ir.walk(axis[key]):
            index[use.index] = ir.AxisSize(*key)
        else:
            continue
        return True
    return False


def _largest(node: Expr, name: str, extent: Expr, index: Mapping[str, Expr]) -> Expr | None:
    """The largest size n of index `name` with 0 <= node < extent, where node may hold size(name) itself."""
    form = affine(node)
    if form is None or name not in form.terms:
        return None
    coefficient = form.terms[name]
    coefficient_up: Expr
    own, constant = _own_size(form.constant, name)
    if constant is None:
        return None
    rest = interval(Affine(form.without(name).terms, constant).expression(), {i: ir.Size(i) for i in index})
    if rest is None:
        return None
    if not isinstance(coefficient, Number):
        if own:
            return None
        coefficient_up, coefficient_down = coefficient, Number(0)  # a static stride counts as positive
    else:
        coefficient_up, coefficient_down = Number(max(coefficient.value, 0)), Number(min(coefficient.value, 0))
    found: list[Expr] = []
    up = add(coefficient_up, Number(own))
    if not (isinstance(up, Number) and up.value <= 0):  # up*n <= extent - 1 - rest + coefficient_up
        room = add(subtract(subtract(extent, Number(1)), rest[1]), coefficient_up)
        found.append(greatest(floor_divide(tidy(room), up), ZERO))
    down = add(coefficient_down, Number(own))
    if isinstance(down, Number) and down.value < 0:  # down*n >= coefficient_down - rest
        found.append(greatest(floor_divide(tidy(subtract(rest[0], coefficient_down)), Number(-down.value)), ZERO))
    return reduce(minimum, found) if found else None


def _own_size(constant: Expr, name: str) -> tuple[int, Expr | None]:
    """Splits a constant into a whole multiple of size(name) and the rest; None for the rest if it cannot be split."""
    form = affine(ir.exchange(constant, ir.Size(name), ir.Index("size")))
    if form is None:
        return 0, None
    multiple = form.terms.get("size", ZERO)
    if not isinstance(multiple, Number) or not isinstance(multiple.value, int):
        return 0, None
    return multiple.value, form.constant


def resolve(
    loops: ir.Loops,
    rules: SizeRules,
    shapes: Mapping[str, tuple[int, ...]],
    statics: Mapping[str, int],
    given: Mapping[str, int],
) -> Sizes:
    """The numbers of one call, from the shapes of the inputs; every disagreement is collected, then raised."""
    if rules.missing:
        raise ShapeError([_missing_size(loops, name).faults[0] for name in rules.missing])
    index: dict[str, int] = {}
    active: list[str] = []

    def formula(node: Expr, named: str, declared: str, span: Callable[[], Span | None]) -> int:
        """The value of a size that others may ask for meanwhile."""
        if declared in active:
            way = " needs ".join([*active[active.index(declared) :], declared])
            raise ShapeError(f"the size of {named} depends on itself: {way}", span(), f"declare `{declared} = ...`")
        active.append(declared)
        value = evaluate(node, size_of, axis_of, statics)
        active.pop()
        return value

    def size_of(name: str) -> int:
        if name in index:
            return index[name]
        if name not in given and name not in rules.index:
            raise _missing_size(loops, name)
        known = given.get(name)
        if known is None:
            known = formula(rules.index[name], f"index {name}", f"size({name})", lambda: _span_of(loops, name))
        index[name] = known
        return known

    def axis_of(tensor: str, place: int) -> int:
        if tensor in shapes:
            if not -len(shapes[tensor]) <= place < len(shapes[tensor]):
                raise ShapeError(
                    f"{tensor} has {len(shapes[tensor])} axes; size({tensor}, {place}) asks for another",
                    hint="axes count from 0, or from -1 backwards",
                )
            return shapes[tensor][place]
        place = place + loops.ranks.get(tensor, 0) if place < 0 else place
        if (tensor, place) not in rules.axis:
            raise _missing_axis(loops, tensor, place)
        writers = (s.target.span for s in loops.statements if s.target.tensor == tensor)
        named, declared = f"{tensor}'s axis {place}", f"size({tensor}, {place})"
        return formula(rules.axis[tensor, place], named, declared, lambda: next(writers, None))

    for name in (*loops.indices, *given):
        if name != ir.BATCH and size_of(name) < 0:
            raise ShapeError(
                f"index {name} would have the negative size {index[name]}",
                _declaration_span(loops, name),
                f"check `size({name})` against the shapes given",
            )
    all_shapes = dict(shapes)
    for tensor in loops.written:
        if tensor not in all_shapes:
            all_shapes[tensor] = tuple(axis_of(tensor, a) for a in range(loops.ranks[tensor]))
            if any(extent < 0 for extent in all_shapes[tensor]):
                raise ShapeError(f"{tensor} would have the shape {all_shapes[tensor]}", hint="check its declared sizes")
    sizes = Sizes(index, all_shapes, dict(statics))
    faults = [*_disagreements(loops, sizes, given), *_declaration_faults(loops, sizes, given)]
    if faults:
        raise ShapeError(faults)
    return sizes


def _declaration_span(loops: ir.Loops, name: str) -> Span | None:
    return next((d.span for d in loops.sizes if d.subject == ir.Size(name)), None)


def _span_of(loops: ir.Loops, name: str) -> Span | None:
    """Where an index is declared, or first named."""
    return _declaration_span(loops, name) or next((use.span for use in _uses_of(loops, name)), None)


def _uses_of(loops: ir.Loops, name: str) -> Iterator[ir.Access]:
    """The accesses whose brackets name an index."""
    for statement in loops.statements:
        for node in statement.nodes:
            if isinstance(node, ir.Access) and any(name in ir.index_names(place) for place in node.indices):
                yield node


def _missing_size(loops: ir.Loops, name: str) -> ShapeError:
    uses = list(_uses_of(loops, name))
    where = f"; it stands in {', '.join(dict.fromkeys(show_access(u) for u in uses[:4]))}" if uses else ""
    return ShapeError(
        f"the size of index {name} cannot be found{where}",
        uses[0].span if uses else None,
        f"declare it, `size({name}) = ...`, or give it at the call, `{name}=10`",
    )


def _missing_axis(loops: ir.Loops, tensor: str, place: int) -> ShapeError:
    target = next((s.target for s in loops.statements if s.target.tensor == tensor), None)
    span = target.span if target else None
    why = f" from `{show(target.indices[place])}`" if target and place < len(target.indices) else ""
    return ShapeError(
        f"the size of {tensor}'s axis {place} cannot be found{why}",
        span,
        f"declare it: `size({tensor}, {place}) = ...`",
    )


def _disagreements(loops: ir.Loops, sizes: Sizes, given: Mapping[str, int]) -> Iterator[Fault]:
    """Bare uses whose axis is not as long as the index: on inputs, and on tensors written with another bare index."""
    inputs = set(loops.inputs)
    written = bare_written(loops)
    strict = [
        use
        for use in bare_uses(loops)
        if (use.tensor in inputs or (use.tensor, use.axis) in written)
        and use.index != ir.BATCH
        and use.axis < len(sizes.shapes.get(use.tensor, ()))
    ]
    anchors: dict[str, BareUse] = {}  # a use of each index that agrees with its size
    for use in strict:
        if sizes.shapes[use.tensor][use.axis] == sizes.index[use.index]:
            anchors.setdefault(use.index, use)
    told: set[tuple[str, str, int]] = set()
    for use in strict:
        extent, size = sizes.shapes[use.tensor][use.axis], sizes.index[use.index]
        anchor = anchors.get(use.index)
        key = (use.index, use.tensor, use.axis)
        if extent == size or key in told:
            continue
        told.add(key)
        if anchor is not None and (use.index not in given or anchor.tensor in inputs):
            first = f"{size} on {anchor.tensor} (axis {anchor.axis})"
            longer = use.tensor if extent > size else anchor.tensor
            hint = (
                f"one index is one range: give {anchor.tensor} and {use.tensor} the same size there, or use two "
                f"indices; `{use.index}+0` reads a part of {longer}"
            )
        else:
            first = f"{size} as given at the call" if use.index in given else f"{size} by `size({use.index})`"
            hint = f"one index is one range: `{use.tensor}` needs size({use.index}) = {extent}, or another index"
            if size < extent:
                hint += f"; `{use.index}+0` reads a part of an axis"
        yield Fault(
            f"index {use.index} has size {first} but {extent} on {use.tensor} (axis {use.axis})", use.span, hint
        )


def _declaration_faults(loops: ir.Loops, sizes: Sizes, given: Mapping[str, int]) -> Iterator[Fault]:
    for declaration in loops.sizes:
        subject = declaration.subject
        if declaration.inferred and isinstance(subject, ir.Size) and subject.index in given:
            continue
        wanted = sizes.value(declaration.value)
        actual = (
            sizes.index[subject.index] if isinstance(subject, ir.Size) else sizes.shapes[subject.tensor][subject.axis]
        )
        if wanted != actual:
            formula = "" if isinstance(declaration.value, Number) else f"{show(declaration.value)} = "
            yield Fault(
                f"{show(subject)} is {actual}, but is declared as {formula}{wanted}",
                declaration.span,
                "make the declaration and the arrays agree",
            )


def evaluate(
    node: Expr, size_of: Callable[[str], int], axis_of: Callable[[str, int], int], statics: Mapping[str, int]
) -> int:
    """An index-free integer expression, by number."""

    def number(n: Expr) -> int:
        match n:
            case Number(value=value) if isinstance(value, int):
                return value
            case ir.Static(name=name):
                return statics[name]
            case ir.Size(index=index):
                return size_of(index)
            case ir.AxisSize(tensor=tensor, axis=axis):
                return axis_of(tensor, axis)
            case ir.Unary(operator="-", operand=a):
                return -number(a)
            case ir.Binary(operator=operator, left=a, right=b) if operator in WHOLE:
                x, y = number(a), number(b)
                if operator in ("//", "%") and y == 0:
                    raise ShapeError(
                        f"`{show(n)}` divides by zero", n.span, "a size or static integer here must not be 0"
                    )
                return WHOLE[operator](x, y)
            case ir.Call(function=function, arguments=arguments) if function in WHOLE:
                return WHOLE[function](*map(number, arguments))
        raise ShapeError(
            f"`{show(n)}` cannot stand in a size",
            n.span,
            "a size is made of size(...), static integers, whole numbers and + - * // % min max",
        )

    return number(node)
