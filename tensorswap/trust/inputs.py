"""Random inputs for a program: sizes by index, shapes by how each input is read, whole numbers that are in bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, ShapeError
from ..language import ir
from ..language.bound import Bound
from ..language.hints import closest
from ..language.interval import interval
from ..language.ir import Expr, Number
from ..language.options import each_part
from ..language.paths import always_read
from ..language.render import access as show_access
from ..language.render import expression as show
from ..language.sizes import bare_uses, bare_written, evaluate, infer
from ..room import physical
from ..rules.activity import integer_uses
from ..rules.batch import expand_batch
from ..rules.expand import expand
from ..run.arguments import bind, defaults

SIZE = 64  # of an index that nobody named
BYTES = 2**31  # sizes that nobody named may not ask for more
MOST = 2**46  # bytes that no machine has
TRIES = 4096  # lengths of an axis that are tried to give an index its size

Shapes = Mapping[str, tuple[int, ...]]
Key = str | tuple[str, int]  # an index, or an axis of a tensor


@dataclass(frozen=True)
class Inputs:
    """The arguments of a call, and what they are bound to: the program without `...`, with all sizes."""

    arguments: dict[str, Any]
    bound: Bound


@dataclass(frozen=True)
class Draw:
    """How inputs are drawn: sizes of indices that nobody named, in turn; the types of inputs that are not the usual
    one; the range of floating-point numbers, by default where log, sqrt, asin and probabilities are at home; whether
    arrays of them are shapes alone, without memory: a plan looks at whole numbers only."""

    sizes: tuple[int, ...] = (SIZE,)
    seed: int = 0
    types: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    numbers: tuple[float, float] = (0.1, 0.9)
    shapes_alone: bool = False


def random_inputs(
    given: ir.Loops, sizes: Mapping[str, int], shapes: Shapes, dtype: np.dtype[Any], draw: Draw | None = None
) -> Inputs:
    """Arrays, the static integers named, and the sizes that no array shows."""
    draw = draw or Draw()
    sizes = each_part(given, sizes)
    _check_names(given, sizes, shapes)
    loops = _without_dots(expand(given), shapes)
    extents = Extents(loops, _of_indices(given, loops, sizes), shapes, _statics(loops, sizes), draw.sizes)
    found = extents.shapes()
    chosen = list(dict.fromkeys(n if n in given.indices else ir.BATCH for n in extents.chosen))
    integers = integer_uses(loops)
    limits = _Limits(dtype, chosen, frozenset(integers) if draw.shapes_alone else None)
    limits.check(found, found)
    arguments: dict[str, Any] = {name: sizes[name] for name in loops.static_names if name in sizes}
    arguments |= {name: extents[name] for name in infer(loops).missing}
    stand_in = {  # without their memory: what is wrong with the shapes is told first
        name: np.broadcast_to(np.zeros((), draw.types.get(name, np.int64 if name in integers else dtype)), shape)
        for name, shape in found.items()
    }
    bound = bind(loops, {**arguments, **stand_in})
    further = {n: size for n, size in sizes.items() if bound.sizes.index.get(n, size) != size}
    if further:  # an index runs as far as it can, unless it is told not to
        arguments |= further
        bound = bind(loops, {**arguments, **stand_in})
    limits.check(bound.sizes.shapes, dict.fromkeys((*found, *loops.outputs)))
    arguments |= _drawn(bound, integers, dtype, draw)
    return Inputs(arguments, bind(loops, arguments))


def free_sizes(given: ir.Loops, draw: Draw) -> dict[str, int]:
    """The static integers, and the indices whose sizes nothing else decides, with what they are if nobody says."""
    loops = _without_dots(expand(given), {})
    statics = _statics(loops, {name: 1 for name in loops.static_names if name not in loops.static_defaults})
    declared = {d.subject.index for d in loops.sizes if isinstance(d.subject, ir.Size)}
    usual = [name for name in loops.indices if name not in declared]  # of indices that are one, the name that is not so
    try:
        extents = Extents(loops, {}, {}, statics, draw.sizes)
    except ShapeError:  # by static integers that somebody must choose first: then any index may have a size
        return {**statics, **{name: draw.sizes[0] for name in usual if name in given.indices}}
    chosen = [next((n for n in usual if extents.root(n) == extents.root(name)), name) for name in extents.chosen]
    names = dict.fromkeys(name if name in given.indices else ir.BATCH for name in chosen)
    return {**statics, **{name: draw.sizes[k % len(draw.sizes)] for k, name in enumerate(names)}}


def _drawn(bound: Bound, integers: Collection[str], dtype: np.dtype[Any], draw: Draw) -> dict[str, Any]:
    """Random values of the shapes that are bound. Numbers with a default keep it."""
    ranges = _ranges(bound)
    targets = [s.target for s in bound.loops.statements if s.operator == "="]
    scattering = {n.tensor for t in targets for n in ir.walk(t) if isinstance(n, ir.Access)}
    generator = np.random.default_rng(draw.seed)
    least, most = draw.numbers
    found: dict[str, Any] = {}
    for name in bound.loops.inputs:
        shape = bound.arrays[name].shape
        if name in defaults(bound.loops):
            continue
        kind = draw.types.get(name, np.dtype(np.int64) if name in integers else dtype)
        if kind.kind == "f" and draw.shapes_alone and shape:
            found[name] = without_memory(shape, kind)
        elif kind.kind == "f":
            number = least + (most - least) * generator.random(shape)
            found[name] = number.astype(kind) if shape else float(number)
        else:
            low, high = ranges.get(name, (0, max(draw.sizes) - 1))
            whole = generator.integers(low, high + 1, shape).astype(kind)
            if name in scattering and math.prod(shape) <= high + 1 - low:  # `=` may meet no element twice
                whole = low + generator.permutation(high + 1 - low)[: math.prod(shape)].reshape(shape)
            found[name] = whole.astype(kind) if shape else kind.type(whole).item()
    return found


def without_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """One number that stands for an array of that shape."""
    return np.broadcast_to(np.full((), 0.5, dtype), shape)


def _check_names(loops: ir.Loops, sizes: Mapping[str, int], shapes: Shapes) -> None:
    known = [*loops.static_names, *loops.indices]
    for name, size in sizes.items():
        if name not in known:
            hint = closest(name, known, "it has")
            raise ArgumentError(f"the program has no index or static integer {name[:80]!r}", hint=hint)
        if name in loops.indices and size < 1:
            raise ArgumentError(f"index {name} cannot have the size {size} here", hint=f"--size {name}={SIZE}")
    for name in loops.static_names:
        if name not in sizes and name not in loops.static_defaults:
            raise ArgumentError(f"the static integer {name} has no default", hint=f"give it: --size {name}=1")
    for name, shape in shapes.items():
        if name not in loops.inputs:
            hint = closest(name, loops.inputs, "its inputs are")
            raise ArgumentError(f"the program has no input {name[:80]!r}", hint=hint)
        if min(shape) < 1:
            raise ArgumentError(f"{name} cannot have the shape {_by(shape)} here", hint="each axis is 1 or longer")
        rank = loops.ranks.get(name)
        if rank is not None and len(shape) != rank and not any(a.batched for a in _reads(loops, name)):
            hint = f"--shape {name}={','.join([str(SIZE)] * rank)}" if rank else "a single number has no shape"
            raise ArgumentError(f"{name} has {rank} axes, but --shape gives it {len(shape)}", hint=hint)


def _reads(loops: ir.Loops, tensor: str) -> Iterator[ir.Access]:
    inner = (access for s in loops.statements for access in s.reads)
    return (access for access in (*loops.header_accesses, *inner) if access.tensor == tensor)


def _without_dots(loops: ir.Loops, shapes: Shapes) -> ir.Loops:
    """The program with `...` written out: as many axes as a shape says, or else one."""
    beside = {name: len(a.indices) - 1 for name in loops.inputs for a in _reads(loops, name) if a.batched}
    count = next((len(shapes[name]) - rank for name, rank in beside.items() if name in shapes), 1)
    return expand_batch(loops, {n: len(shapes[n]) if n in shapes else rank + count for n, rank in beside.items()})


def _of_indices(before: ir.Loops, after: ir.Loops, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of indices; that of `...` is for each axis that it stands for."""
    named = {name: size for name, size in sizes.items() if name in after.indices}
    if ir.BATCH in sizes:
        named |= {name: sizes[ir.BATCH] for name in after.indices if name not in before.indices}
    return named


def _statics(loops: ir.Loops, sizes: Mapping[str, int]) -> dict[str, int]:
    found = {name: sizes[name] for name in loops.static_names if name in sizes}
    for name, default in loops.static_defaults.items():  # one that follows another stands behind it
        found.setdefault(name, found[default] if isinstance(default, str) else default)
    return found


class Extents:
    """How long indices and axes are. Those that must be equal are one, such as an index and an axis it is bare on."""

    def __init__(
        self,
        loops: ir.Loops,
        sizes: Mapping[str, int],
        shapes: Shapes,
        statics: Mapping[str, int],
        usual: tuple[int, ...],
    ) -> None:
        self.loops, self.statics, self.usual = loops, statics, usual
        self.ranks = {**loops.ranks, **{name: len(shape) for name, shape in shapes.items()}}
        self.parent: dict[Key, Key] = {}
        self.sizes: dict[Key, int] = {}
        self.options: dict[Key, str] = {}  # that gave a size
        self.chosen: list[str] = []  # indices that nobody named
        self.formulas: list[tuple[Key, ir.SizeDeclaration]] = []
        self.written = infer(loops).axis  # of tensors that the program computes
        self.join_equals()
        for name, shape in shapes.items():
            for axis, size in enumerate(shape):
                self.give((name, axis), size, f"--shape {name}={','.join(map(str, shape))}")
        for name, size in sizes.items():
            self.give(name, size, f"--size {name}={size}")
        self.choose()
        while self.follow() or self.search() or self.reach() or self.gather():
            pass
        self.check()

    def join_equals(self) -> None:
        written = bare_written(self.loops)
        for axis, name in written.items():
            self.join(axis, name)
        for use in bare_uses(self.loops):
            if use.tensor in self.loops.inputs or (use.tensor, use.axis) in written:
                self.join((use.tensor, use.axis), use.index)
        for declaration in self.loops.sizes:
            if isinstance(declaration.value, ir.Size | ir.AxisSize):
                self.join(self.key(declaration.subject), self.key(declaration.value))
            else:
                self.formulas.append((self.key(declaration.subject), declaration))

    def key(self, node: ir.Size | ir.AxisSize) -> Key:
        if isinstance(node, ir.Size):
            return node.index
        return node.tensor, node.axis + (self.ranks.get(node.tensor, 0) if node.axis < 0 else 0)

    def root(self, key: Key) -> Key:
        while key in self.parent:
            key = self.parent[key]
        return key

    def join(self, one: Key, other: Key) -> None:
        if self.root(one) != self.root(other):
            self.parent[self.root(one)] = self.root(other)

    def give(self, key: Key, size: int, option: str) -> None:
        root = self.root(key)
        if self.sizes.get(root, size) != size:
            raise ShapeError(f"`{self.options[root]}` and `{option}` disagree", hint="one range has one size")
        self.sizes[root], self.options[root] = size, option

    def __getitem__(self, key: Key) -> int:
        return self.sizes[self.root(key)]

    def knows(self, key: Key) -> bool:
        return self.root(key) in self.sizes

    def unknown(self, node: Expr) -> set[Key]:
        """The sizes in a formula that are not known."""
        keys = {self.root(self.key(n)) for n in ir.walk(node) if isinstance(n, ir.Size | ir.AxisSize)}
        return keys - self.sizes.keys()

    def number(self, node: Expr) -> int | None:
        """The value of a formula, if all sizes in it are known."""
        if self.unknown(node):
            return None
        return evaluate(node, self.__getitem__, lambda t, a: self[self.key(ir.AxisSize(t, a))], self.statics)

    # -- rules, the surest first; each says whether it found something

    def choose(self) -> None:
        """An index that nothing else decides has the usual size."""
        declared = {self.root(subject) for subject, _ in self.formulas}
        for name in self.loops.indices:
            if not self.knows(name) and self.root(name) not in declared:
                self.sizes[self.root(name)] = self.usual[len(self.chosen) % len(self.usual)]
                self.chosen.append(name)

    def follow(self) -> bool:
        """What is declared or written follows from what is known."""
        for axis, formula in self.written.items():
            value = None if self.knows(axis) else self.number(formula)
            if value is not None:
                self.sizes[self.root(axis)] = value
                return True
        for subject, declaration in self.formulas:
            value = None if self.knows(subject) else self.number(declaration.value)
            if value is not None and value < 0:
                raise ShapeError(
                    f"{show(declaration.subject)} would be {value}, by {show(declaration.value)}",
                    declaration.span,
                    f"give other sizes: {', '.join(self.free(declaration.value))}",
                )
            if value is not None:
                self.sizes[self.root(subject)] = value
                return True
        return False

    def search(self) -> bool:
        """An axis that only the declared size of an index asks for is as long as makes that size the usual one."""
        for subject, declaration in self.formulas:
            unknown = self.unknown(declaration.value) - {self.root(subject)}
            if len(unknown) != 1 or unknown & self.written.keys():
                continue
            axis, known = unknown.pop(), self.knows(subject)
            wanted = self[subject] if known else self.usual[0]
            for size in range(1, 16 * wanted + TRIES):
                self.sizes[axis] = size
                if self.number(declaration.value) == wanted:
                    break
            else:
                self.sizes[axis] = self.usual[0]
            if not known and isinstance(subject, str):
                self.chosen.append(subject)
            return True
        return False

    def reach(self) -> bool:
        """An axis is as long as the farthest place that is read on it."""
        for name, axis in self.open_axes():
            reaches = [self.farthest(place) for place in self.places(name, axis)]
            if reaches and None not in reaches:
                self.sizes[self.root((name, axis))] = max(1, *(r or 0 for r in reaches))
                return True
        return False

    def gather(self) -> bool:
        """An axis that is read where an array says has the usual size, or more if other reads go further."""
        for name, axis in self.open_axes():
            places = self.places(name, axis)
            if any(isinstance(n, ir.Access) for place in places for n in ir.walk(place)):
                reached = [self.farthest(place) or 0 for place in places]
                self.sizes[self.root((name, axis))] = max(self.usual[0], *reached)
                return True
        return False

    def check(self) -> None:
        for subject, declaration in self.formulas:
            option = self.options.get(self.root(subject))
            value = self.number(declaration.value)
            if option is not None and value is not None and value != self[subject]:
                formula = f"{show(declaration.value)} = {value}"
                raise ShapeError(
                    f"`{option}` disagrees with {show(declaration.subject)}, which is declared as {formula}",
                    declaration.span,
                    f"it follows from others, give those: {', '.join(self.free(declaration.value))}",
                )

    def free(self, formula: Expr, above: frozenset[Key] = frozenset()) -> list[str]:
        """The options that decide a formula; what is declared itself is asked what decides it."""
        declared = {self.root(subject): declaration.value for subject, declaration in self.formulas}
        found: dict[str, None] = {}
        for node in (n for n in ir.walk(formula) if isinstance(n, ir.Size | ir.AxisSize)):
            root = self.root(self.key(node))
            if root in declared and root not in above:
                found |= dict.fromkeys(self.free(declared[root], above | {root}))
            else:
                found[f"--size {node.index}" if isinstance(node, ir.Size) else f"--shape {node.tensor}"] = None
        return list(found)

    def open_axes(self) -> Iterator[tuple[str, int]]:
        axes = ((name, axis) for name in self.loops.inputs for axis in range(self.ranks.get(name, 0)))
        return (key for key in axes if not self.knows(key))

    def places(self, name: str, axis: int) -> list[Expr]:
        return [access.indices[axis] for access in _reads(self.loops, name)]

    def farthest(self, place: Expr) -> int | None:
        """One more than the greatest value of an index expression."""
        known = {name: Number(self[name]) for name in ir.index_names(place) if self.knows(name)}
        bounds = interval(place, known)
        last = None if bounds is None else self.number(bounds[1])
        return None if last is None else last + 1

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all inputs, save numbers that have a default."""
        found: dict[str, tuple[int, ...]] = {}
        for name in self.loops.inputs:
            if name in defaults(self.loops):
                continue
            rank = self.ranks.get(name)
            axes = [(name, axis) for axis in range(rank or 0)]
            lost = next((axis for _, axis in axes if not self.knows((name, axis))), None)
            if rank is None or lost is not None:
                places = [] if lost is None else self.places(name, lost)
                why = f": its axis {lost} is read at `{show(places[0])}`" if places else ": only its size is asked for"
                example = ",".join(str(self[key] if self.knows(key) else SIZE) for key in axes) or str(SIZE)
                span = next((access.span for access in _reads(self.loops, name)), None)
                raise ShapeError(
                    f"the shape of {name} cannot be found{why}", span, f"give it: --shape {name}={example}"
                )
            found[name] = tuple(self[key] for key in axes)
        return found


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


@dataclass(frozen=True)
class _Limits:
    """Refuses arrays that nobody can have meant, before they are allocated: those of `held`, if the others are shapes
    alone."""

    dtype: np.dtype[Any]
    chosen: list[str]  # indices that nobody named
    held: frozenset[str] | None

    def check(self, shapes: Shapes, names: Collection[str]) -> None:
        if self.held is not None:
            self._check(shapes, names, MOST)
        held = names if self.held is None else [name for name in names if name in self.held]
        self._check(shapes, held, BYTES if self.chosen else physical() or MOST)

    def _check(self, shapes: Shapes, names: Collection[str], limit: int) -> None:
        total = sum(math.prod(shapes[name]) * self.dtype.itemsize for name in names)
        if total <= limit:
            return
        most = max(names, key=lambda name: math.prod(shapes[name]))
        named = f", of {', '.join(self.chosen)}: --size {self.chosen[0]}=8" if self.chosen else ""
        told = f"{Decimal(total) / 10**9:.3g} GB"  # which may be more than a float can hold
        hint = f"choose smaller sizes{named}"
        raise ShapeError(f"the arrays would take {told}; {most} is {_by(shapes[most])}", hint=hint)


def _ranges(bound: Bound) -> dict[str, tuple[int, int]]:
    """The least and greatest value of each input that is used to gather, so that all that it reads is in bounds."""
    found: dict[str, tuple[int, int]] = {}
    for statement in bound.loops.statements:
        for access in (n for n in statement.nodes if isinstance(n, ir.Access)):
            for axis, place in enumerate(access.indices):
                names = [a.tensor for a in _outermost(place) if a.tensor in bound.arrays]
                ends = _ends(place, names, bound) if names else None
                if ends is None:
                    continue
                least = max(0, -ends(0, 0)[0])
                most = _most(ends, least, bound.sizes.shapes[access.tensor][axis])
                if most is None:
                    if not statement.guard and access in always_read(statement.target, statement.value):
                        raise _too_short(bound, access, axis, names[0], ends(least, least)[1] + 1)
                    continue
                for name in names:
                    low, high = found.get(name, (least, most))
                    found[name] = max(low, least), min(high, most)
    for name, (low, high) in found.items():
        if low > high:
            raise ShapeError(f"no whole number for {name} is in bounds everywhere", hint="give other --size or --shape")
    return found


def _outermost(place: Expr) -> Iterator[ir.Access]:
    """The accesses of an index expression that stand in no other."""
    if isinstance(place, ir.Access):
        yield place
    else:
        for part in ir.children(place):
            yield from _outermost(part)


Ends = Callable[[int, int], tuple[int, int]]


def _ends(place: Expr, names: list[str], bound: Bound) -> Ends | None:
    """From the ends of gathered values to those of the index expression around them; None if there is more to it."""

    def ends(low: int, high: int) -> tuple[int, int]:
        found = interval(place, bound.sizes.index, dict.fromkeys(names, (Number(low), Number(high))))
        assert found is not None
        return bound.sizes.value(found[0]), bound.sizes.value(found[1])

    known = interval(place, bound.sizes.index, dict.fromkeys(names, (Number(0), Number(0))))
    return None if known is None else ends


def _most(ends: Ends, least: int, extent: int) -> int | None:
    """The greatest value with which an access stays within its axis; None if not even the least one does."""

    def fits(most: int) -> bool:
        low, high = ends(least, most)
        return low >= 0 and high < extent

    if not fits(least):
        return None
    most = least
    for step in (2**k for k in range(extent.bit_length(), -1, -1)):
        most += step if fits(most + step) else 0
    return most


def _too_short(bound: Bound, access: ir.Access, axis: int, name: str, least: int) -> ShapeError:
    uses = (u.index for u in bare_uses(bound.loops) if (u.tensor, u.axis) == (access.tensor, axis))
    index = next(uses, None)
    shape = list(bound.sizes.shapes[access.tensor])
    shape[axis] = least
    option = f"--size {index}={least}" if index else f"--shape {access.tensor}={','.join(map(str, shape))}"
    return ShapeError(
        f"no whole number in {name} keeps {show_access(access)} in bounds: axis {axis} of {access.tensor} is too short",
        access.span,
        f"make it longer: {option}, or more",
    )
